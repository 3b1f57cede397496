"""Writes testdata/ops/newer.json: operator vectors of the operations that the first set does not have.

    python3 internal/oracle/newer_ops.py internal/oracle/testdata/ops     (PyTorch 1.13, scipy, numpy)

Inputs are rounded to the stored dtype and widened to float64; the operation and its derivatives are
PyTorch's in float64 (or written here where it has none), and results are rounded once. The form is that
of the larger set (its README.md is quoted in testdata/README.md); the same bytes each time.
"""
import base64, json, math, sys
import numpy as np, scipy.special, torch
import torch.nn.functional as F

SEED, R = 14, np.random.default_rng(14)
F64 = torch.float64
CASES = []


class Typed:
    """A stored tensor: float64 or integer values with the name of a dtype."""

    def __init__(self, values, dtype):
        self.dtype, self.values = dtype, rounded(np.asarray(values), dtype)

    def raw(self):
        v = self.values
        if self.dtype == "bfloat16":
            return (v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        if self.dtype.startswith("float8"):
            return float8_codes(v, self.dtype).tobytes()
        return np.ascontiguousarray(v).astype(self.dtype).tobytes()

    def entry(self, name):
        return {"name": name, "dtype": self.dtype, "shape": list(self.values.shape), "data": base64.b64encode(self.raw()).decode()}


def rounded(v, dtype):
    """Values to the nearest of the dtype, ties to even, as float64 (integers and bool as they are)."""
    if dtype in ("float32", "float16"):
        return v.astype(dtype).astype(np.float64)
    if dtype == "bfloat16":
        return torch.tensor(v, dtype=F64).to(torch.float32).to(torch.bfloat16).to(F64).numpy()
    if dtype.startswith("float8"):
        return float8_values(dtype)[float8_codes(v, dtype)].reshape(v.shape)
    return v.astype(dtype)


def float8_values(dtype):
    """The 256 numbers of a float8, written out from its definition."""
    mant, bias = (3, 7) if dtype == "float8_e4m3fn" else (2, 15)
    out = []
    for b in range(256):
        e, m = (b & 127) >> mant, b & ((1 << mant) - 1)
        v = m * 2.0 ** (1 - bias - mant) if e == 0 else (1 + m / 2**mant) * 2.0 ** (e - bias)
        if dtype == "float8_e4m3fn" and b & 127 == 127:
            v = math.nan
        if dtype == "float8_e5m2" and e == 31:
            v = math.inf if m == 0 else math.nan
        out.append(-v if b & 128 else v)
    return np.array(out)


def float8_codes(v, dtype):
    """The byte of the nearest number, found by looking at all of them."""
    table = float8_values(dtype)
    top = 448 if dtype == "float8_e4m3fn" else 57344
    step = top - table[0:126][table[0:126] < top].max()
    out = []
    for x in np.asarray(v, dtype=np.float64).ravel():
        sign = 128 if math.copysign(1, x) < 0 else 0
        size = abs(x)
        if math.isnan(x):
            out.append(sign | 127)
        elif size >= top + step / 2 and not (dtype == "float8_e4m3fn" and size == top + step / 2):
            out.append(sign | (127 if dtype == "float8_e4m3fn" else 124))
        else:
            codes = [b for b in range(127) if table[b] <= top]
            out.append(sign | min(codes, key=lambda b: (abs(table[b] - size), b & 1)))
    return np.array(out, dtype=np.uint8).reshape(np.shape(v))


def normal(*shape, scale=1.0):
    return R.normal(size=shape) * scale


def f32(v):
    return Typed(v, "float32")


def ints(v, dtype="int32"):
    return Typed(v, dtype)


def case(name, op, attrs, inputs, f, *, rtol=1e-5, atol=1e-6, grad=True, dtypes=None, grad_rtol=None, grad_atol=None, only=None):
    """Adds a case. f takes PyTorch tensors and gives one or a list; only names the inputs with gradients."""
    ts = []
    for i, x in enumerate(inputs):
        floats = x.values.dtype == np.float64
        want = grad and floats and (only is None or i in only)
        ts.append(torch.tensor(x.values, dtype=F64 if floats else None, requires_grad=bool(want)))
    outs = f(*ts)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    kind = next((x.dtype for x in inputs if x.values.dtype == np.float64), "float32")
    names = dtypes or [kind if o.is_floating_point() else str(o.dtype).removeprefix("torch.") for o in outs]
    c = {"name": name, "op": op, "attrs": attrs, "inputs": [x.entry("xyzuvw"[i]) for i, x in enumerate(inputs)],
         "outputs": [Typed(o.detach().numpy(), d).entry(f"out{i}") for i, (o, d) in enumerate(zip(outs, names))],
         "rtol": rtol, "atol": atol}
    if grad:
        seeds = [Typed(normal(*o.shape), d) if o.is_floating_point() and o.requires_grad else None for o, d in zip(outs, names)]
        total = sum((o * torch.tensor(s.values)).sum() for o, s in zip(outs, seeds) if s is not None)
        wanted = [t for t in ts if t.requires_grad]
        got = iter(torch.autograd.grad(total, wanted, allow_unused=True))
        c["grads"] = []
        for t, x in zip(ts, inputs):
            g = next(got) if t.requires_grad else None
            if t.requires_grad and g is None:
                g = torch.zeros_like(t)
            c["grads"].append(None if g is None else Typed(g.numpy(), x.dtype).entry("grad"))
        entries = [s and s.entry("grad_out") for s in seeds]
        c.update({"grad_outputs": entries} if len(outs) > 1 else {"grad_output": entries[0]})
        c["grad_rtol"], c["grad_atol"] = grad_rtol or 4 * rtol, grad_atol or 4 * atol
    CASES.append(c)


def created():
    for shape in ([], [3], [2, 0, 4], [1, 5]):
        tag = "x".join(map(str, shape)) or "scalar"
        case(f"zeros_{tag}", "zeros", {"shape": shape, "dtype": "float32"}, [], lambda: torch.zeros(shape, dtype=F64), grad=False, rtol=0, atol=0)
        case(f"ones_{tag}", "ones", {"shape": shape, "dtype": "int64"}, [], lambda: torch.ones(shape, dtype=torch.int64), grad=False, rtol=0, atol=0)
        case(f"full_{tag}", "full", {"shape": shape, "value": -2.5, "dtype": "float16"}, [], lambda: torch.full(shape, -2.5, dtype=F64), grad=False, rtol=0, atol=0, dtypes=["float16"])
    for n in (0, 1, 4):
        case(f"eye_{n}", "eye", {"n": n, "dtype": "float32"}, [], lambda: torch.eye(n, dtype=F64), grad=False, rtol=0, atol=0)
    for a, b, s in ((0, 7, 1), (5, -4, -2), (3, 3, 1), (-3, 4, 3)):
        case(f"arange_{a}_{b}_{s}", "arange", {"start": a, "stop": b, "step": s, "dtype": "int32"}, [], lambda: torch.arange(a, b, s, dtype=torch.int32) if (b - a) * s > 0 else torch.zeros(0, dtype=torch.int32), grad=False, rtol=0, atol=0)
    case("arange_half", "arange", {"start": -1, "stop": 1.25, "step": 0.5, "dtype": "float32"}, [], lambda: torch.arange(-1, 1.25, 0.5, dtype=F64), grad=False, rtol=0, atol=0)
    for a, b, n in ((0, 1, 5), (2, -1, 1), (-3, 3, 7), (1, 2, 0)):
        case(f"linspace_{a}_{b}_{n}", "linspace", {"start": a, "stop": b, "n": n, "dtype": "float32"}, [], lambda: torch.linspace(a, b, n, dtype=F64), grad=False, rtol=1e-6, atol=1e-7)
    x, y, z = f32(normal(2)), f32(normal(1)), f32(normal(3))
    case("meshgrid_2_1_3", "meshgrid", {}, [x, y, z], lambda *v: torch.meshgrid(*v, indexing="ij"), rtol=0, atol=0, grad_rtol=1e-5, grad_atol=1e-6)


def elementwise():
    near = np.concatenate([np.linspace(-0.999, 0.999, 21), [1e-6, -1e-6, 0.9999, -0.9999]])
    case("erfinv", "erfinv", {}, [f32(near)], torch.erfinv, rtol=1e-5, atol=1e-6)
    case("erfinv_ends", "erfinv", {}, [f32(np.array([1, -1, 0, 1.5, -0.0, np.nan]))], torch.erfinv, grad=False)
    positive = np.array([0.001, 0.1, 0.5, 1, 1.4616321, 1.5, 2, 3.7, 10, 33.3, 100, 1e4])
    negative = np.array([-0.5, -1.5, -2.25, -3.75, -7.1])
    for tag, v in (("positive", positive), ("negative", negative)):
        case(f"lgamma_{tag}", "lgamma", {}, [f32(v)], torch.lgamma, rtol=1e-5, atol=2e-6, grad_rtol=1e-4, grad_atol=1e-5)
        case(f"digamma_{tag}", "digamma", {}, [f32(v)], torch.digamma, rtol=2e-5, atol=5e-6, grad=False)
    case("nan_to_num", "nan_to_num", {}, [f32(np.array([np.nan, np.inf, -np.inf, 1.5, -0.0]))], lambda x: torch.nan_to_num(x, posinf=float(np.finfo(np.float32).max), neginf=float(np.finfo(np.float32).min)), grad=False, rtol=0, atol=0)
    case("nan_to_num_values", "nan_to_num", {"nan": 7, "posinf": 1, "neginf": -2}, [f32(np.array([[np.nan, np.inf], [-np.inf, 1.5]]))], lambda x: torch.nan_to_num(x, 7, 1, -2), rtol=0, atol=0)
    case("logaddexp", "logaddexp", {}, [f32(normal(3, 1, scale=3)), f32(normal(1, 4, scale=3))], torch.logaddexp, rtol=5e-6, atol=2e-6)
    case("logaddexp_far", "logaddexp", {}, [f32(np.array([200, -200, -np.inf, np.inf, 1])), f32(np.array([100, -100, 3, 4, -np.inf]))], torch.logaddexp, grad=False)
    case("isclose", "isclose", {"rtol": 0.01, "atol": 0.001}, [f32(np.array([1, 1, 0, np.nan, np.inf, np.inf])), f32(np.array([1.005, 1.02, 0.0005, np.nan, np.inf, -np.inf]))], lambda x, y: torch.isclose(x, y, 0.01, 0.001), grad=False)
    case("isclose_nan", "isclose", {"rtol": 0.01, "atol": 0, "equal_nan": True}, [f32(np.array([np.nan, np.nan, 2])), f32(np.array([np.nan, 1, 2]))], lambda x, y: torch.isclose(x, y, 0.01, 0, True), grad=False)
    for shape, channels in (((2, 3, 4), 3), ((5,), 1), ((2, 1, 0), 1), ((3, 4), 1)):
        case(f"prelu_{'x'.join(map(str, shape))}_{channels}", "prelu", {}, [f32(normal(*shape)), f32(normal(channels))], F.prelu)


def float8s():
    corners = [0, -0.0, 1, -1, 2**-9, 2**-10, 2**-10 * 1.0001, 3 * 2**-10, 2**-16, 2**-17, 3 * 2**-18, 17, 19, 21, 447, 448, 463.9, 464, 464.1, 465, 57344, 61439, 61440, 1e6, -1e9, np.inf, -np.inf, np.nan]
    v = np.concatenate([corners, normal(20, scale=4), normal(20, scale=1e-3), normal(20, scale=3e4)])
    for name in ("float8_e4m3fn", "float8_e5m2"):
        case(f"to_{name}", "cast", {"dtype": name}, [f32(v)], lambda x: x, dtypes=[name], rtol=0, atol=0, grad=False)
        numbers = np.concatenate([float8_values(name)[b] for b in ([range(0, 126)], [range(128, 254)])]).ravel()
        numbers = numbers[np.isfinite(numbers)]
        case(f"from_{name}", "cast", {"dtype": "float32"}, [Typed(numbers, name)], lambda x: x, dtypes=["float32"], rtol=0, atol=0, grad=False)
        a, b = Typed(normal(3, 5), name), Typed(normal(5), name)
        case(f"mul_{name}", "mul", {}, [a, b], torch.mul, rtol=0, atol=0, grad=False)
        case(f"add_{name}", "add", {}, [a, b], torch.add, rtol=0, atol=0, grad=False)
        case(f"to_bfloat16_{name}", "cast", {"dtype": "bfloat16"}, [a], lambda x: x, dtypes=["bfloat16"], rtol=0, atol=0)


def products():
    case("tensordot_2_axes", "tensordot", {"axes": [1, -1], "others": [0, 2]}, [f32(normal(2, 3, 4)), f32(normal(3, 5, 4))], lambda x, y: torch.tensordot(x, y, ([1, 2], [0, 2])))
    case("tensordot_outer", "tensordot", {"axes": [], "others": []}, [f32(normal(2)), f32(normal(3, 1))], lambda x, y: torch.tensordot(x, y, 0))
    case("tensordot_empty", "tensordot", {"axes": [1], "others": [0]}, [f32(normal(2, 0)), f32(normal(0, 3))], lambda x, y: torch.tensordot(x, y, 1))
    case("kron", "kron", {}, [f32(normal(2, 3)), f32(normal(3, 1))], torch.kron)
    case("kron_ranks", "kron", {}, [f32(normal(3)), f32(normal(2, 2))], torch.kron)
    case("cross_axis1", "cross", {"axis": 1}, [f32(normal(2, 3, 4)), f32(normal(2, 3, 4))], lambda x, y: torch.cross(x, y, 1))
    case("cross_broadcast", "cross", {"axis": -1}, [f32(normal(4, 1, 3)), f32(normal(5, 3))], lambda x, y: torch.linalg.cross(*torch.broadcast_tensors(x, y), dim=-1))
    for p in (1, 2, 3, "inf"):
        case(f"cdist_{p}", "cdist", {"p": p}, [f32(normal(2, 2, 3)), f32(normal(2, 4, 3))], lambda x, y: torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), ord=float(p), dim=-1))
    case("cdist_same", "cdist", {"p": 2}, [f32(np.ones((2, 3))), f32(np.array([[1, 1, 1], [1, 1, 3.0]]))], lambda x, y: torch.cdist(x, y, 2))


def pooled():
    for sizes, shape in (([3], (2, 3, 7)), ([1], (1, 2, 5)), ([5], (1, 1, 3)), ([2, 3], (1, 2, 5, 4)), ([1, 7], (1, 2, 3, 7))):
        tag = "x".join(map(str, shape)) + "_" + "x".join(map(str, sizes))
        avg, top = (F.adaptive_avg_pool1d, F.adaptive_max_pool1d) if len(sizes) == 1 else (F.adaptive_avg_pool2d, F.adaptive_max_pool2d)
        case(f"adaptive_avg_{tag}", "adaptive_avg_pool", {"size": sizes}, [f32(normal(*shape))], lambda x: avg(x, sizes))
        case(f"adaptive_max_{tag}", "adaptive_max_pool", {"size": sizes}, [f32(normal(*shape))], lambda x: top(x, sizes), rtol=0, atol=0, grad_rtol=1e-5, grad_atol=1e-6)
    for size, kernel, stride, padding, dilation in (([4, 5], [2, 2], [1, 1], [0, 0], [1, 1]), ([5, 6], [2, 3], [2, 1], [1, 0], [1, 2]), ([3, 3], [3, 1], [3, 2], [1, 1], [1, 1])):
        o = dict(kernel_size=kernel, stride=stride, padding=padding, dilation=dilation)
        windows = F.unfold(torch.zeros(1, 1, *size, dtype=F64), **o).shape[2]
        case(f"fold_{size[0]}x{size[1]}_{kernel[0]}x{kernel[1]}", "fold", {"size": size, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation},
             [f32(normal(1, 2 * kernel[0] * kernel[1], windows))], lambda x: F.fold(x, size, **o))
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                case(f"grid_{mode}_{padding}_{'aligned' if align else 'edges'}", "grid_sample", {"mode": mode, "padding_mode": padding, "align_corners": align},
                     [f32(normal(1, 1, 3, 4)), f32(normal(1, 2, 3, 2, scale=0.8))], lambda x, g: F.grid_sample(x, g, mode, padding, align), only=[0, 1] if mode == "bilinear" else [0], grad_rtol=1e-4, grad_atol=2e-5)


def losses():
    for reduction in ("mean", "sum", "none"):
        a, b = f32(normal(4, 3)), f32(normal(4, 3))
        target = ints(np.array([1, -1, -1, 1]))
        case(f"cosine_loss_{reduction}", "cosine_loss", {"margin": 0.1, "reduction": reduction}, [a, b, target], lambda x, y, t: F.cosine_embedding_loss(x, y, t, 0.1, reduction=reduction))
        near, far = f32(normal(4, 3)), f32(normal(4, 3))
        triplet = lambda x, y, z: (torch.linalg.vector_norm(x - y, dim=-1) - torch.linalg.vector_norm(x - z, dim=-1) + 1).clamp(min=0)
        fold = {"mean": torch.mean, "sum": torch.sum, "none": lambda v: v}[reduction]
        case(f"triplet_{reduction}", "triplet_loss", {"margin": 1, "reduction": reduction}, [a, near, far], lambda *v: fold(triplet(*v)))
        p = scipy.special.softmax(normal(3, 5), -1)
        p[0, 0] = 0
        q = scipy.special.log_softmax(normal(3, 5), -1)
        case(f"kl_{reduction}", "kl_loss", {"reduction": reduction}, [f32(q), f32(p)], lambda x, t: F.kl_div(x, t, reduction=reduction), only=[0])
        logp = scipy.special.log_softmax(normal(7, 3, 5), -1)
        targets, steps, lengths = np.array([[1, 2, 2], [4, 0, 0], [3, 1, 4]]), np.array([7, 4, 6]), np.array([3, 0, 2])
        case(f"ctc_{reduction}", "ctc_loss", {"blank": 0, "reduction": reduction}, [f32(logp), ints(targets), ints(steps), ints(lengths)],
             lambda x, t, s, l: ctc(x, t, s, l, 0, reduction), only=[0], grad_rtol=1e-4, grad_atol=1e-5)
    case("cosine_axis0", "cosine_similarity", {"axis": 0, "eps": 1e-8}, [f32(normal(5, 1, 2)), f32(normal(5, 3, 2))], lambda x, y: F.cosine_similarity(*torch.broadcast_tensors(x, y), dim=0))
    logp = scipy.special.log_softmax(normal(4, 1, 4), -1)
    case("ctc_blank3", "ctc_loss", {"blank": 3, "reduction": "sum"}, [f32(logp), ints([[0, 0]]), ints([4]), ints([2])], lambda x, t, s, l: ctc(x, t, s, l, 3, "sum"), only=[0], grad_rtol=1e-4, grad_atol=1e-5)
    case("ctc_impossible", "ctc_loss", {"blank": 0, "reduction": "none"}, [f32(logp), ints([[1, 1, 2]]), ints([3]), ints([3])], lambda x, t, s, l: ctc(x, t, s, l, 0, "none"), grad=False)


def ctc(logp, targets, steps, lengths, blank, reduction):
    """The sum over alignments by the recurrence of Graves et al. 2006, differentiated by PyTorch.
    (Its own ctc_loss takes the derivative by the logits before log_softmax.)"""
    out = []
    for n in range(targets.shape[0]):
        labels = [blank]
        for k in range(int(lengths[n])):
            labels += [int(targets[n, k]), blank]
        zero = torch.tensor(-math.inf, dtype=F64)
        a = [logp[0, n, labels[s]] if s < 2 else zero for s in range(len(labels))]
        for t in range(1, int(steps[n])):
            b = []
            for s, label in enumerate(labels):
                paths = [a[s]] + ([a[s - 1]] if s > 0 else [])
                if s > 1 and label != blank and label != labels[s - 2]:
                    paths.append(a[s - 2])
                paths = [p for p in paths if p > -math.inf]
                b.append(torch.logsumexp(torch.stack(paths), 0) + logp[t, n, label] if paths else zero)
            a = b
        ends = [p for p in a[-2:] if p > -math.inf]
        out.append(-torch.logsumexp(torch.stack(ends), 0) if ends else torch.tensor(math.inf, dtype=F64))
    loss = torch.stack(out)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss


def transforms():
    for n, shape, axis in ((1, (2, 1), 1), (5, (5,), 0), (8, (8, 2), 0), (12, (12,), -1), (13, (1, 13), 1)):
        a, b = f32(normal(*shape)), f32(normal(*shape))
        pair = lambda c: (c.real, c.imag)
        o = dict(rtol=1e-5, atol=1e-5)
        case(f"fft_{n}", "fft", {"axis": axis}, [a, b], lambda x, y: pair(torch.fft.fft(torch.complex(x, y), dim=axis)), **o)
        case(f"ifft_{n}", "ifft", {"axis": axis}, [a, b], lambda x, y: pair(torch.fft.ifft(torch.complex(x, y), dim=axis)), **o)
        case(f"rfft_{n}", "rfft", {"axis": axis}, [a], lambda x: pair(torch.fft.rfft(x, dim=axis)), **o)
        half = list(shape)
        half[axis] = n // 2 + 1
        case(f"irfft_{n}", "irfft", {"axis": axis, "n": n}, [f32(normal(*half)), f32(normal(*half))], lambda x, y: torch.fft.irfft(torch.complex(x, y), n=n, dim=axis), **o)


def matrices():
    o = dict(rtol=1e-4, atol=2e-5, grad_rtol=4e-4, grad_atol=2e-4)
    for shape in ((1, 1), (3, 3), (2, 2, 2), (0, 2, 2), (4, 4), (1, 11, 11)):
        n, tag = shape[-1], "x".join(map(str, shape))
        large = n > 10
        a = f32(normal(*shape) + n**0.5 * 2 * np.eye(n))
        case(f"inverse_{tag}", "inverse", {}, [a], torch.linalg.inv, grad=not large, **o)
        if not large:
            case(f"det_{tag}", "det", {}, [a], torch.linalg.det, **o)
            case(f"solve_{tag}", "solve", {}, [a, f32(normal(*shape[:-1], 2))], torch.linalg.solve, **o)
        m = normal(*shape)
        spd = f32(m @ np.swapaxes(m, -1, -2) / n + np.eye(n))
        lower = lambda x: torch.tril(x) + torch.tril(x, -1).transpose(-1, -2)
        case(f"cholesky_{tag}", "cholesky", {}, [spd], lambda x: torch.linalg.cholesky(lower(x)), grad=not large, **o)
    for shape in ((1, 1), (3, 3), (5, 3), (2, 4, 2), (2, 4), (9, 7)):
        tag, small = "x".join(map(str, shape)), max(shape) < 9
        a = f32(normal(*shape))
        wide = shape[-1] > shape[-2]
        case(f"qr_{tag}", "qr", {}, [a], qr, grad=small and not wide, **o)
        case(f"svd_{tag}", "svd", {}, [a], svd, grad=small, **o)
    for shape in ((1, 1), (2, 2), (2, 3, 3), (10, 10)):
        n, small = shape[-1], shape[-1] < 10
        m = normal(*shape)
        a = f32(m + np.swapaxes(m, -1, -2) + np.diag(np.arange(n) * 6.0))
        lower = lambda x: torch.tril(x) + torch.tril(x, -1).transpose(-1, -2)
        case(f"eigh_{'x'.join(map(str, shape))}", "eigh", {}, [a], lambda x: squares(*torch.linalg.eigh(lower(x))), grad=small, **o)


def qr(a):
    q, r = torch.linalg.qr(a)
    sign = torch.diagonal(r, dim1=-2, dim2=-1).sign().detach()
    return q * sign.unsqueeze(-2), r * sign.unsqueeze(-1)


def svd(a):
    """Singular values, squares of U and of V: what no sign of a column changes."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return s, u * u, (vh * vh).transpose(-1, -2)


def squares(values, vectors):
    return values, vectors * vectors


def searched():
    i32 = torch.int32
    exact = dict(rtol=0, atol=0, grad=False)
    for tag, v, dtype in (("ints", [[3, -1, 3], [0, 3, -1]], "int32"), ("bytes", [255, 0, 7, 255], "uint8"), ("floats", [2.5, -1, 2.5, 0, 7, -1], "float32"), ("bools", [[True], [True]], "bool")):
        x = Typed(np.array(v), dtype)
        values, inverse, counts = np.unique(x.values, return_inverse=True, return_counts=True)
        for size in (len(values), len(values) + 2):
            pad = lambda w: np.concatenate([w, np.zeros(size - len(w), w.dtype)])
            outs = [torch.tensor(pad(values)), torch.tensor(inverse.reshape(x.values.shape), dtype=i32), torch.tensor(pad(counts), dtype=i32), torch.tensor(len(values), dtype=i32)]
            case(f"unique_{tag}_{size}", "unique", {"size": size}, [x], lambda _: outs, dtypes=[dtype, "int32", "int32", "int32"], **exact)
    for tag, v in (("2x3", [[0, 1.5, 0], [2, 0, -1]]), ("none", [0.0, 0.0]), ("1x1x4", [[[1, 0, 0, 2.0]]])):
        x = f32(np.array(v))
        at = np.argwhere(x.values != 0)
        size = 4
        rows = np.concatenate([at, np.full((size - len(at), at.shape[1]), -1)])
        case(f"nonzero_{tag}", "nonzero", {"size": size}, [x], lambda _: [torch.tensor(rows, dtype=i32), torch.tensor(len(at), dtype=i32)], **exact)
    x, mask = f32(normal(3, 4)), Typed(R.random((1, 4)) < 0.6, "bool")
    picked = x.values[np.broadcast_to(mask.values, (3, 4))]
    case("masked_select", "masked_select", {"size": 12}, [x, mask], lambda v, m: [F.pad(torch.masked_select(v, m), (0, 12 - len(picked))), torch.tensor(len(picked), dtype=i32)], only=[0], rtol=0, atol=0, grad_rtol=1e-6, grad_atol=1e-7)
    case("bincount", "bincount", {"bins": 6}, [ints([[1, 1, 5], [9, -1, 0]])], lambda _: torch.tensor([1, 2, 0, 0, 0, 1], dtype=i32), **exact)
    case("bincount_empty", "bincount", {"bins": 2}, [ints(np.zeros(0))], lambda _: torch.zeros(2, dtype=i32), **exact)
    for right in (False, True):
        case(f"searchsorted_{right}", "searchsorted", {"right": right}, [f32(np.array([-1, 0, 0, 2.5, 7])), f32(np.array([[-2, -1, 0], [0.5, 7, 9]]))], lambda a, v: torch.searchsorted(a, v, right=right, out_int32=True), **exact)
        case(f"searchsorted_rows_{right}", "searchsorted", {"right": right}, [f32(np.sort(normal(2, 6), -1)), f32(normal(2, 3))], lambda a, v: torch.searchsorted(a, v, right=right, out_int32=True), **exact)
    for q in (0, 0.1, 0.5, 0.875, 1):
        case(f"quantile_{q}", "quantile", {"q": q, "axis": 1}, [f32(normal(2, 7, 1))], lambda x: torch.quantile(x, q, 1), rtol=1e-6, atol=1e-6, grad_rtol=2e-5, grad_atol=2e-6)
    for n in (1, 4, 5):
        case(f"median_{n}", "median", {"axis": -1}, [f32(normal(2, n))], lambda x: torch.quantile(x, 0.5, -1), rtol=1e-6, atol=1e-6, grad_rtol=2e-5, grad_atol=2e-6)


def main():
    for group in (created, elementwise, float8s, products, pooled, losses, transforms, matrices, searched):
        group()
    assert len({c["name"] for c in CASES}) == len(CASES)
    head = {"format": 1, "group": "newer", "set": "visible", "seed": SEED, "reference": "PyTorch 1.13 in float64 (newer_ops.py)"}
    lines = ",\n".join(json.dumps(c, separators=(",", ":"), allow_nan=False) for c in CASES)
    with open(sys.argv[1] + "/newer.json", "w") as f:
        f.write(json.dumps(head, separators=(",", ":"))[:-1] + ',"cases":[\n' + lines + "\n]}\n")
    print(len(CASES), "cases")


main()

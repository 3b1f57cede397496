#!/usr/bin/env python3
"""Records what Jinja2 makes of the templates below: python3 jinja.py > jinja.json

Needs jinja2 3.1 (pip install jinja2). The environment is that of chat templates:
trim_blocks, lstrip_blocks, loop controls, and a tojson that escapes nothing. Where a
template fails, only that it fails is recorded.
"""
import json
import jinja2, jinja2.ext
from jinja2.sandbox import SandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.TemplateError(message)


env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception

variables = {
    "s": "Hello, World", "t": "  two  words \n", "u": "Ça va ? 你好 🙂 straße", "empty": "", "n": 7, "z": 0, "f": 2.5, "g": 1e20,
    "yes": True, "no": False, "nothing": None, "list": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, 2], [3, [4, "x"]]],
    "dict": {"b": 1, "a": "two", "C": None, "items": [1]}, "users": [
        {"name": "Zed", "age": 3, "tags": ["x"], "on": True}, {"name": "amy", "age": 30, "tags": [], "on": False},
        {"name": "Bob", "age": 3, "on": True}],
    "quote": "it's \"quoted\" <b>&amp;</b>\t\\ \u0001 \u2028", "lines": "one\n\ntwo\n  three\n",
    "tool": {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {"a": {"type": "number", "enum": [1, 2.0, -3e-7]}}, "required": []}}},
}

expressions = []

E = expressions.append
for e in r'''
s|upper
s|lower
s|title
"it's a (test) of-this o'neil"|title
"it's a test".title()
s|capitalize
u|upper
u|length
u|reverse
u[1:4]
u[::-1]
u[-3:]
s[0]
s[-1]
s[100]
s[2:100]
s[5:2]
s[::2]
s[10:2:-3]
t|trim
t.strip()
t.lstrip()
t.rstrip()
"xxhixx".strip("x")
"xyhixy"|trim("xy")
s|replace("l", "L")
s|replace("l", "L", 1)
s.replace("", "-")
s.replace("", "-", 3)
"".replace("", "x")
s.split(",")
s.split()
t.split()
"a,b,c,d".split(",", 2)
"a,b,c,d".rsplit(",", 2)
"a b  c d".split(None, 1)
"a b  c d".rsplit(None, 1)
"a,b,c".split(",")[-1]
"a--b".partition("--")
"a--b--c".rpartition("--")
"ab".partition("x")
"ab".rpartition("x")
lines.splitlines()
lines.splitlines(True)
s.startswith("Hell")
s.startswith(("x", "H"))
s.endswith("d")
s.find("o")
s.rfind("o")
u.find("好")
s.find("zz")
s.index("o")
s.index("zz")
s.count("l")
"5".isdigit()
"5a".isdigit()
"abc".isalpha()
"ab1".isalnum()
"  ".isspace()
"AB".isupper()
"ab".islower()
"aB".swapcase()
"7".zfill(3)
"-7".zfill(4)
"a".ljust(3) ~ "|"
"a".rjust(3, "*")
"ab".center(5, "*")
"abc".center(6, "*")
"ab"|center(7) ~ "|"
"prefix-x".removeprefix("prefix-")
"x-suffix".removesuffix("-suffix")
"a" "b" 'c'
"tab\there\x41\u00e7\101\q\\"
1 + 2 * 3 - 4 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7.5 % 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
10 / 4
10 / 5
1 / 0
1e3
1.5e-7
1_000
0x1F + 0b11 + 0o17
g
f
f|int
-f
+n
"3" + 4
s ~ n ~ f ~ nothing ~ yes
"a" * 3
3 * "ab"
[1, 2] * 2
[1] + [2]
(1, 2) + (3,)
[1] + (2,)
1 if yes else 2
1 if no
(1 if no) is defined
yes and no or n
not yes
not n == 7
not nothing is none
yes and "x"
z or "default"
1 < 2 < 3
1 < 2 > 3
1 == 1.0
1 == true
"1" == 1
"a" < "b"
[1, 2] < [1, 3]
"a" < 1
none == none
missing == missing
missing == none
n != 7
2 in list
9 not in list
"ell" in s
"b" in dict
"zz" in dict
1 in s
"x" in missing
missing
missing.attr
missing[0]
dict.zz
dict.zz.y
dict["zz"]
dict.b
dict["b"]
dict.items
dict["items"]
dict.items()
dict.keys()|list
dict.values()|list
dict.get("b")
dict.get("zz")
dict.get("zz", 5)
nothing.x
nothing["x"]
nothing.x.y
n.x
s.x
s.x.y
list[0]
list[-1]
list[7]
list[7].x
list.0
list[1:]
list[::-1]
list[:-1]
list[5:]
nested[1][1][1]
list
words
nested
dict
users
quote
[quote]
["it's"]
['say "hi"']
{"a": 1, "b": [true, none, 1.5]}
{1: 2, none: 3, true: 4}
{}
[]
()
(1,)
(1, 2)
1, 2
list|tojson
dict|tojson
tool|tojson
tool|tojson(indent=2)
tool|tojson(indent=4)
tool|tojson(indent=0)
tool|tojson(separators=(",", ":"))
tool|tojson(sort_keys=true)
tool|tojson(indent=2, sort_keys=true)
u|tojson
u|tojson(ensure_ascii=true)
quote|tojson
[]|tojson(indent=2)
{}|tojson(indent=2)
[[], {}, [1]]|tojson(indent=2)
1e20|tojson
1.0|tojson
none|tojson
missing|tojson
{1: 2}|tojson
list|join
list|join(", ")
words|join("-")
users|join(",", attribute="name")
users|map(attribute="name")|join(", ")
users|map(attribute="tags", default="none")|list
users|map("length")|list
words|map("upper")|list
words|map("replace", "a", "z")|list
words|map("nope")|list
list|select("odd")|list
list|select("divisibleby", 3)|list
list|reject("equalto", 2)|list
[0, 1, "", "x", none]|select|list
[0, 1, "", "x", none]|reject|list
users|selectattr("on")|map(attribute="name")|list
users|selectattr("age", "equalto", 3)|map(attribute="name")|list
users|selectattr("age", "==", 3)|list|length
users|selectattr("tags", "defined")|list|length
users|rejectattr("age", "gt", 5)|map(attribute="name")|join(",")
users|selectattr("name", "in", ["Bob", "amy"])|list|length
tool.function.parameters.properties|list
tool.function.parameters.properties.items()|list
list|sort
list|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
users|sort(attribute="name")|map(attribute="name")|list
users|sort(attribute="age,name")|map(attribute="name")|list
users|groupby("age")|list|length
words|unique|list
words|unique(case_sensitive=true)|list
[1, 1, 2]|unique|list
dict|dictsort
{"b": 1, "a": 2, "C": 3}|dictsort
{"b": 1, "a": 2, "C": 3}|dictsort(true)
{"b": 1, "a": 2, "C": 3}|dictsort(by="value", reverse=true)
dict|items|list
missing|items|list
list|sum
users|sum(attribute="age")
users|sum("age", 10)
list|max
list|min
words|max
users|max(attribute="age")
[]|max
list|first
[]|first
list|last
list|length
dict|length
missing|length
n|length
list|reverse|list
list|list
s|list
dict|list
"abc"|batch(2)|list
list|batch(2, "x")|list
list|slice(2)|list
[1,2,3,4,5]|slice(3, "x")|list
n|string ~ "x"
"42"|int
"4.7"|int
"x"|int
"x"|int(5)
"ff"|int(0, 16)
"0x1f"|int(0, 16)
none|int
"1.5"|float
"x"|float
n|float
n|abs
(-n)|abs
-n|abs
f|round
2.567|round(2)
2.5|round
3.5|round
2.1|round(0, "ceil")
2.9|round(method="floor")
n|round
missing|default("d")
nothing|default("d")
nothing|default("d", true)
""|d("d", boolean=true)
s|default("d")
quote|e
"<a>"|escape ~ "<b>"
"<a>"|escape + "<b>"
"<a>"|safe ~ "x"
"<a>"|safe + "<b>"
"<a>"|e|e
"<a>"|forceescape
"x"|safe|upper
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent("> ")
"a\nb"|indent(3)
"hello big wide world"|truncate(12)
"hello big wide world"|truncate(12, true)
"hello big wide world"|truncate(12, true, "")
"hello big"|truncate(7)
lines|wordcount
"%s is %d"|format("x", 3)
"%s and %s" % ("a", "b")
"%5.2f|%-4s|%04d" % (3.14159, "ab", 7)
"%(a)s" % {"a": 1}
"100%%" % ()
"%s" % "q"
"{} {}".format(1, "b")
"{0}-{1}-{0}".format("a", "b")
"{x}".format(x=5)
", ".join(words)
"".join([])
",".join([1])
words.index("c")
words.index("q")
words.count("a")
dict|attr("items") is callable
n is number
yes is number
f is float
n is integer
yes is integer
yes is boolean
s is string
n is string
dict is mapping
list is mapping
list is sequence
s is sequence
s is iterable
n is iterable
missing is iterable
missing is defined
missing is not defined
missing is undefined
nothing is none
nothing is not none
yes is true
n is true
no is false
z is false
n is odd
n is even
9 is divisibleby 3
9 is divisibleby(2)
n is eq 7
n is ne 7
n is lt 8
n is gt(8)
n is sameas 7
true is sameas true
1 is sameas true
"a" is in "abc"
2 is in list
2 is not in list
s is upper
"abc" is lower
raise_exception is callable
"upper" is filter
"nope" is filter
"odd" is test
s is nosuchtest
s|nosuchfilter
s.upper().lower()
s|upper|lower|title
(s|upper)[0:3]
(list|sort)[0]
-list[0]
list|length + 1
n - 3|abs
"a" ~ 1 + 2
1 + 2 ~ "a"
{"a": {"b": [1, {"c": "deep"}]}}.a.b[1].c
{'a': 1}["a"]
[1, 2, 3][1:][0]
"abc"[1]
range(5)|list
range(2, 8, 3)|list
range(5, 0, -2)|list
dict(a=1, b=2)
dict.copy()
namespace(a=1).a
namespace(a=1).b
joiner(",")() ~ "x"
cycler("a", "b").next()
raise_exception("no")
"}}" ~ '{%'
{"a": {"b": 1}}
true and True
None is none
"a" if missing else "b"
"a" if n > 3 and s else "b" if no else "c"
s.lower().split(", ")[1].upper()
(n, s)[1]
not missing
missing|upper
nothing|upper
yes|upper
nothing ~ ""
list ~ ""
users[0].name
users[0]["name"]
users[-1].age + 1
users|map(attribute="age")|sum
users|map(attribute="nope")|list
(users|first).name
users|length > 2
s is string and n is number
s is string or missing.x.y
[1, [2, 3]]|tojson
"é" | tojson
"a\\nb"
'a\nb'
"a\
b"
1.0
100000000000000000.0
0.0001
0.00001
123456789.123
1e16
-0.0
1e400
9007199254740993
3 == 3.0
"abc" == "abc"
[1, "a"] == [1, "a"]
{"a": 1} == {"a": 1.0}
"a" in ["a"]
"" in s
missing + 1
nothing + 1
nothing + "x"
"x" + nothing
-s
s * s
nothing[1:]
n[:2]
dict[::2]
missing[1:]
s["a":]
nothing|select|list
z|map("upper")|list
no|selectattr("a")|list
n|select|list
[none, none]|sort
[missing, missing]|sort|length
[1, none]|sort
users|sort(attribute="name,age")|map(attribute="name")|list
[[1, none], [1, none], [0, "x"]]|sort
yes|round
2.0 is even
2.5 is odd
"a" is even
7.5 is divisibleby(2)
missing is callable
users|truncate(3)
n|truncate(3)
n|indent
"a\u2028"|indent
"" % [1]
"%(a)s" % {"a": 1, "b": 2}
0 % -0.5
{missing: 1}|length
s()
s.upper
n(1)
list.append(4)
'''.strip("\n").split("\n"):
    E(e)

templates = ["{{ %s }}" % e for e in expressions if not e.endswith("\\") and e != 'b"']
templates.append('{{ "a\\\nb" }}')
templates += [
    "{% for x in list %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index0 }}{{ x }} {{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }};{% endfor %}",
    "{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in dict|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for (k, v) in dict|items %}{{ k }}={{ v }};{% endfor %}",
    "{% for a, b in nested %}{{ a }}-{{ b }};{% endfor %}",
    "{% for a, b in list %}{{ a }}{% endfor %}",
    "{% for c in 'abc' %}{{ c }}.{% endfor %}",
    "{% for k in dict %}{{ k }}.{% endfor %}",
    "{% for x in n %}{% endfor %}",
    "{% for x in missing %}x{% else %}e{% endfor %}",
    "{% for x in nothing %}x{% endfor %}",
    "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}after",
    "{% for x in list %}{% for y in words %}{{ loop.depth }}{% if y == 'c' %}{% break %}{% endif %}{{ y }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in list %}{{ loop.cycle('odd', 'even') }} {% endfor %}",
    "{% for x in [1, 1, 2, 2] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in [1, [2, [3, []]]] recursive %}{% if x is number %}{{ loop.depth }}{{ loop.depth0 }}:{{ x }}{% else %}({{ loop(x) }}){% endif %}{% else %}empty{% endfor %}",
    "{% for k, v in tool.items() recursive %}{{ k }}={% if v is mapping %}{{ '<' + loop(v.items())|upper + '>' }}{% else %}{{ v }}{% endif %}{% if not loop.last %};{% endif %}{% endfor %}",
    "{% for x in list %}{{ loop([1]) }}{% endfor %}",
    "{% set (x, y) = [1, 2] %}{{ x }}{{ y }}{% set (z) = 3 %}{{ z }}",
    "{% set x, y = 1, 2, %}{{ x }}{{ y }}",
    "{% set (x, y = 1, 2 %}",
    "{% set x = 1 %}{% for i in list %}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = 5 %}{{ ns.a }}{{ ns.b is defined }}",
    "{% set d = {} %}{% set d.x = 1 %}",
    "{% if yes %}{% set x = 3 %}{% endif %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = list %}",
    "{% set x %}text {{ n }} {% endset %}[{{ x }}]{{ x|length }}",
    "{% set x | upper | trim %} abc {% endset %}[{{ x }}]",
    "{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 5) }} {{ m(a=9, c='z') }} {{ m() }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1)|upper ~ '!' }}{{ m(s)|length }}",
    "{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1)|int) }}{% endif %}{% endmacro %}{{ fact(5) }}",
    "{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}in {{ n }}{% endcall %}",
    "{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each(list) %}<{{ v }}>{% endcall %}",
    "{% set outer = 'o' %}{% macro m() %}{{ outer }}{{ n }}{% endmacro %}{% set outer = 'p' %}{{ m() }}",
    "{% macro m() %}{% set x = 1 %}{% endmacro %}{{ m() }}{{ x is defined }}",
    "{% macro m(x) %}{{ x.name }}{% endmacro %}{% for u in users %}{{ m(u) }}{% endfor %}",
    "{% with a = 1, b = n %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% raw %}{{ not }} {% this %}{% endraw %}",
    "a{%- raw -%} {{ x }} {%- endraw -%} b",
    "{% generation %}{{ s }}{% endgeneration %}",
    "{# comment {{ x }} #}a",
    "a {#- c -#} b",
    "  {% if yes %}\n  yes\n  {% endif %}\nend",
    "a\n  {%- if yes %}  x  {%- endif %}\nb",
    "a\n  {%+ if yes %}x{% endif %}\n",
    "a {% if yes +%}\nx{% endif %}",
    "x  {{- s -}}  y",
    "x\n\n{{ s }}\n\n",
    "{{ s }}\n",
    "\n\n{{ s }}",
    "  {{ s }}  {# c #}\n  z",
    "a\n{# c #}\nb",
    "a\n    {# c #}  \nb",
    "{% if yes %}  {% endif %}|",
    "{% if yes %}\n  {% endif %}|",
    "{{ s }}  {% if yes %}x{% endif %}",
    "line\r\nnext\r\n{% if yes %}\r\nx{% endif %}",
    "{%- for x in list -%}\n  {{ x }}\n{%- endfor -%}\n",
    "{%- for x in list %}\n  {{ x }}\n{%- endfor %}\n",
    "{% for x in list %}\n  {{ x }}\n{% endfor %}\n",
    "{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% else %}c{% endif %}",
    "{% if missing %}a{% endif %}b",
    "{% if users|selectattr('age', 'equalto', 99) %}generators are true{% endif %}",
    "{% if users|selectattr('age', 'equalto', 99)|list %}no{% endif %}",
    "{% set l = [] %}{% do l.append(1) %}{{ l }}",
    "{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}",
    "{% set l = [1] %}{% for x in list %}{% set l = l + [x] %}{% endfor %}{{ l }}",
    "{% set d = {'a': 1} %}{% set _ = d.update({'b': 2}) %}{{ d }}{{ d.pop('a') }}{{ d }}",
    "{% set f = dict.get %}{{ f('b') }}",
    "{% set j = joiner('; ') %}{% for x in list %}{{ j() }}{{ x }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{{ '{{' }}{{ '%}' }}",
    "{{ {'a': {'b': 1}}['a'] }}",
    "{{ {'a':{'b':1}} }}",
    "{% for m in users %}{{ m.name|upper if m.on else m.name|lower }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for i in range(3) %}{% if loop.first %}[{% endif %}{{ i }}{% if loop.last %}]{% endif %}{% endfor %}",
    "{% set messages = users[1:] %}{% for m in messages %}{{ m.name }}{% endfor %}",
    "{%- set ns = namespace(found=false) -%}{%- for u in users -%}{%- if u.on and not ns.found -%}{%- set ns.found = true -%}{{ u.name }}{%- endif -%}{%- endfor -%}",
    "{{ users[0].tags[0] if users[0].tags else '-' }}{{ users[2].tags[0] if users[2].tags else '-' }}",
    "{% for u in users %}{{ u.tags|length if u.tags is defined else 'x' }}{% endfor %}",
    "{% for t in [tool] %}{{ t.function.parameters.properties.keys()|join(',') }}{% for k, v in t.function.parameters.properties|items %}{{ k }}: {{ v.type }}{{ v.enum|tojson }}{% endfor %}{% endfor %}",
    "{% set x = dict(users[0], name='new') %}{{ x.name }}{{ x.age }}",
    "{% set text = s.split(',') %}{{ text[0] }}|{{ text[-1].strip() }}",
    "{{ raise_exception('bad ' ~ n) }}",
    "{% if loop is defined %}x{% endif %}y",
    "{% block a %}x{% endblock %}",
    "{% nosuch %}",
    "{{ x",
    "{% if yes %}",
    "{% endif %}",
    "{{ }}",
    "{{ 1 + }}",
    "{{ (1 }}",
    "{{ [1, }}",
    "{{ 'abc }}",
    "{# abc",
    "{% for %}{% endfor %}",
    "{% for x in %}{% endfor %}",
    "{% set = 3 %}",
    "{% break %}",
    "{{ a b }}",
    "{{ $ }}",
    "{% macro %}{% endmacro %}",
    "{% if 1 %}{% endfor %}",
    "plain text only",
    "",
    "{",
    "{ {x} }",
    "}}",
    "{{ s }}}",
    "{{ s|replace('World', name|default('You')) }}",
    "{%- if tool.function.parameters.properties is defined and tool.function.parameters.properties is mapping -%}m{%- endif -%}",
    "{{ (tool.function.name ~ '(' ~ (tool.function.parameters.properties|list|join(', ')) ~ ')') }}",
    "{% for x in list recursive %}{% endfor %}x" if False else "x",
    "{% set x = 'a' %}{% with x = 'b' %}{{ x }}{% set x = 'c' %}{{ x }}{% endwith %}{{ x }}",
    "{% for x in list %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{{ users | map(attribute='name') | map('lower') | sort | join('+') }}",
    "{{ (users|selectattr('name', 'equalto', 'Bob')|list)[0].age }}",
    "{{ dict | length }}{{ dict.b if 'b' in dict }}",
    "{% set content %}{%- if s is string -%}{{ s }}{%- else -%}x{%- endif -%}{% endset %}{{ content|trim }}",
]

if __name__ == "__main__":
    records = []
    for source in templates:
        record = {"template": source}
        try:
            record["rendered"] = env.from_string(source).render(**json.loads(json.dumps(variables)))
            if " object at 0x" in record["rendered"] or "dict_items(" in record["rendered"] or "built-in" in record["rendered"] or "<bound" in record["rendered"] or "generator" in record["rendered"][:12] and "true" not in source:
                continue
        except Exception as e:
            record["fails"] = f"{type(e).__name__}: {e}"
        records.append(record)
    print(json.dumps({"engine": "Jinja2 " + __import__("importlib.metadata").metadata.version("jinja2"), "variables": variables, "templates": records}, ensure_ascii=False, indent=1))

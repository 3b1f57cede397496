package main

import "math/rand/v2"

// opening introduces the hero.
const opening = "[Once upon a time, there was a {nature} child named {hero}.|Once upon a time, there lived a {nature} child called {hero}.|There once was a {nature} child named {hero}.|{hero} was a {nature} child.]"

const day = "[One day|One morning|One {weather} day|One {weather} morning|On a {weather} afternoon]"

// ending closes a story, one time in three with what was learned.
func ending(lesson string) string {
	return "[From that day on, {hero} knew that " + lesson + ".|{hero} had learned that " + lesson + ".|And {hero} never forgot that day.|That night, {hero} fell asleep with a smile.|{hero} was very happy.|It was a very good day.]"
}

// plots are what can happen. Each draws how it turns out.
var plots = []func(r *rand.Rand) []string{lostToy, sharedFood, hurtAnimal, learnedSkill, brokenThing, grownSeed, lostWay, surprise, storm, newFriend}

func lostToy(r *rand.Rand) []string {
	list := []string{
		opening,
		"{hero} had a {size} {colour} {toy}. [{hero.he} loved it very much.|It was {hero.his} favorite toy.|{hero.he} took it everywhere.]",
		day + ", {hero} went to the {place} and played with the {toy}. [But when it was time to go home, the {toy} was gone.|After a while, {hero.he} could not find the {toy}.|Then {hero.he} looked around, and the {toy} was not there.]",
		`{hero} was sad. [{hero.he} began to cry.|{hero.he} looked everywhere.|"Where is my {toy}?" {hero.he} asked.]`,
	}
	if r.IntN(2) == 0 {
		list = append(list,
			`{friend} came by and asked, "What is wrong?" "I lost my {colour} {toy}," said {hero}. "[I will help you|Let us look for it together|Do not worry, I will help]," said {friend}.`,
			`They looked and looked. [At last|Soon|Then] {friend} saw something {colour} {hide}. It was the {toy}! "Thank you!" said {hero}, and [they played together until dark|{hero.he} gave {friend} a big hug|they both laughed].`)
	} else {
		list = append(list,
			`Just then, a {animal} came out and looked at {hero.him}. The {animal} [walked|ran] away, and {hero} followed it.`,
			`There, {hide}, was the {colour} {toy}! "Thank you, little {animal}," said {hero}. [{hero.he} gave the {animal} a piece of {hero.his} {food}.|The {animal} seemed to smile.|From then on, {hero} and the {animal} were friends.]`)
	}
	return append(list, ending("friends help each other"))
}

func sharedFood(r *rand.Rand) []string {
	list := []string{
		opening,
		day + `, {elder} gave {hero} a {food}. "[This is for you|Eat it while it is fresh|Take this with you]," said {elder}.`,
		"{hero} went to the {place} to eat the {food}. There {hero.he} met {friend}. {friend} [looked hungry|had nothing to eat|looked at the {food}].",
	}
	if r.IntN(2) == 0 {
		return append(list,
			`"Would you like some?" asked {hero}. "Yes, please," said {friend}. So {hero} cut the {food} in two and gave {friend} one half.`,
			"[It tasted even better that way.|They sat in the sun and ate.|{friend} was very happy.] The next day, {friend} brought a {size} {toy}, and they shared that too.", ending("it is good to share"))
	}
	return append(list,
		`{hero} did not want to share. {hero.he} ate the {food} all alone. {friend} [went away|was sad|said nothing]. Then {hero} [felt bad|felt alone|was not happy at all].`,
		`{hero} ran after {friend} and said, "I am sorry. [I should have shared|Come to my house|I have more at home]." They went home, and {elder} gave them a {food} for each. [Now both were happy.|They ate it together.]`, ending("it is good to share"))
}

func hurtAnimal(r *rand.Rand) []string {
	list := []string{
		opening,
		day + ", {hero} was walking in the {place} when {hero.he} heard a small sound. {hide}, there was a little {animal}. [Its leg was hurt.|It could not walk.|It had hurt its foot.]",
		`"[Poor {animal}|Oh no|You poor thing]!" said {hero}. "[Do not be afraid.|I will help you.|Stay here.]"`,
	}
	if r.IntN(2) == 0 {
		list = append(list, "{hero} carried the {animal} home in a basket. {elder} washed its leg and put a soft {colour} cloth around it.")
	} else {
		list = append(list, "{hero} ran home to get {elder}. Together they came back, and {elder} put a soft {colour} cloth around its leg.")
	}
	return append(list,
		"Every day, {hero} brought the {animal} some [water|food|fresh water and food]. After a week, the {animal} could [walk|run|jump] again.",
		"[{hero} let it go, and the {animal} went back to the {place}.|The {animal} wanted to stay, and it became {hero.his} pet.|{hero} opened the door, and the {animal} went home to its family.]", ending("little animals need help too"))
}

func learnedSkill(r *rand.Rand) []string {
	list := []string{
		opening,
		`{hero} wanted to learn to {skill}. {hero.he} had seen {friend} do it at the {place}. "I want to {skill} too," said {hero}.`,
		`{hero} tried, but it was hard. [{hero.he} tried again, and it did not work.|The first time, everything went wrong.|{hero.he} almost gave up.]`,
	}
	if r.IntN(2) == 0 {
		list = append(list, `"Will you teach me?" {hero} asked {friend}. "Of course," said {friend}. Every day after school, they [met at the {place}|worked on it together].`)
	} else {
		list = append(list, `"I can not do it," said {hero}. {elder} smiled. "[You can not do it yet|Nobody can do it the first time|Try a little every day]," said {elder}. So {hero} tried a little every day.`)
	}
	return append(list,
		`[After many days|One day|At last], {hero} could {skill}! "Look at me!" {hero.he} called. [{friend} clapped.|Everyone was proud of {hero.him}.|{elder} was very proud.]`, ending("you must try again and again"))
}

func brokenThing(r *rand.Rand) []string {
	list := []string{
		opening,
		"{elder} had a {size} {colour} [cup|vase|bowl|lamp] that stood on the table. [\"Please be careful with it,\" {elder} always said.|Nobody was allowed to play near it.]",
		day + ", {hero} was playing with a {toy} in the house. [Crash!|Bang!|Oh no!] Something fell from the table and broke.",
	}
	if r.IntN(2) == 0 {
		return append(list,
			`{hero} was afraid, but {hero.he} went to {elder} and said, "I broke it. I am sorry." {elder} was [quiet for a moment|a little sad|surprised]. "Thank you for telling me," said {elder}. "[We can fix it together|It was only a thing]."`,
			"They [glued the pieces together|picked up all the pieces|cleaned the floor]. [It did not look the same, but {elder} liked it even more.|Then they sat down and ate something.] {hero} knew that it is best to tell the truth.")
	}
	return append(list,
		`{hero} hid the pieces [under the bed|in a box|behind the door]. When {elder} asked, "Who did this?", {hero} said nothing. But that night {hero.he} could not sleep.`,
		`In the morning, {hero} told {elder} everything. "I was afraid," {hero.he} said. {elder} hugged {hero.him}. "[I am glad you told me|Do not be afraid to tell me the truth]," {elder.he} said. {hero} felt much better.`)
}

func grownSeed(r *rand.Rand) []string {
	list := []string{
		opening,
		day + `, {elder} gave {hero} a {seed} seed. "Put it in the ground and give it water," said {elder}.`,
		"{hero} put the seed in the garden. {hero.he} gave it water every day. [But nothing happened.|For a long time, there was nothing to see.|Day after day, {hero.he} looked, but there was only earth.]",
	}
	if r.IntN(2) == 0 {
		list = append(list, `"It does not grow," said {hero}. "[Wait a little|Good things take time|Be patient]," said {elder}.`)
	} else {
		list = append(list, `{friend} laughed and said, "There is nothing there!" But {hero} did not give up.`)
	}
	return append(list,
		"Then, one {weather} morning, there was a tiny green leaf! It grew and grew. [Soon it was taller than {hero}.|By summer, it was as big as {hero}.]",
		`"Look, a {seed}!" said {hero}. [{hero.he} showed it to everyone.|{elder} and {friend} came to see it.] {hero} had learned that good things take time.`)
}

func lostWay(r *rand.Rand) []string {
	list := []string{
		opening,
		day + ", {hero} went for a walk. {hero.he} saw a {size} {animal} and ran after it, farther and farther. Then the {animal} was gone, and {hero} did not know where {hero.he} was.",
		`[It was getting dark.|Everything looked the same.|There was nobody around.] "[Where am I|How do I get home]?" {hero.he} whispered.`,
	}
	if r.IntN(2) == 0 {
		return append(list,
			"{hero} sat down and thought. {hero.he} remembered that the path home went by the {place}. {hero.he} climbed on a rock and looked around. There was the {place}!",
			`{hero} walked that way, and soon {hero.he} saw {hero.his} house. {elder} was at the door. "[There you are|I was worried about you]!" said {elder}, and gave {hero.him} a {food}.`, ending("it is best to stay near home"))
	}
	return append(list,
		`Then {hero} saw a light. It was {friend} with a {colour} lantern. "I was looking for you," said {friend}. "[Come with me|I know the way|Take my hand]."`,
		"Together they walked home. {elder} was so glad that {elder.he} gave each of them a {food}. [\"Never run so far alone,\" said {elder}.|{hero} thanked {friend} again and again.]", ending("it is best to stay near home"))
}

func surprise(r *rand.Rand) []string {
	list := []string{
		opening,
		`It was {hero.his} birthday, but nobody said a word about it. [{elder} was busy.|{friend} did not come to play.|Even {elder} said nothing.] "[They forgot|Nobody remembers]," thought {hero}, and {hero.he} was sad.`,
	}
	if r.IntN(2) == 0 {
		list = append(list, "{hero} went to the {place} alone. {hero.he} sat there for a long time and watched a {animal}. When the sun went down, {hero.he} went home.")
	} else {
		list = append(list, `In the afternoon, {elder} said, "Please bring me some water from the {place}." {hero} went there slowly and came back slowly.`)
	}
	return append(list,
		`{hero} opened the door. It was dark. Then the lights went on, and everyone called, "Happy birthday, {hero}!" {friend} was there, and {elder}, and there was a big {food}.`,
		`"[We did not forget|It was a surprise]!" said {friend} and gave {hero.him} a {size} {colour} {toy}. [It was the best day of all.|{hero} laughed and hugged them all.]`)
}

func storm(r *rand.Rand) []string {
	list := []string{
		opening,
		"One night, there was a big storm. The wind [howled|blew and blew], and the rain fell on the roof. {hero} was afraid and hid [under the bed|under the blanket|behind the door].",
	}
	if r.IntN(2) == 0 {
		list = append(list, `{elder} came in with a {colour} lantern. "[The storm can not come in|It is only wind and rain|I am here]," said {elder}. {elder.he} told {hero} a story about a {nature} {animal}.`)
	} else {
		list = append(list, `Then {hero} heard a sound at the window. It was a little {animal}, all wet and cold. "[You are even more afraid than I am|Come in]," said {hero}. {hero.he} let it in and dried it with a {colour} towel.`, "They sat close together and listened to the rain. {hero} was not afraid anymore, because {hero.he} had to be brave for the {animal}.")
	}
	return append(list,
		"[In the morning, the sun was shining.|When {hero} woke up, the storm was over.] Outside, everything was [fresh and bright|wet and shiny], and there was a rainbow over the {place}.", ending("being brave does not mean having no fear"))
}

func newFriend(r *rand.Rand) []string {
	list := []string{
		opening,
		`{hero} had just moved to a new house near the {place}. {hero.he} did not know anyone there. "[I have no friends here,|I am all alone here,|Who will play with me?]" {hero.he} said. "[You will find one|Go outside and look]," said {elder}.`,
		day + ", {hero} went outside with {hero.his} {colour} {toy}. Another child was sitting on a bench, all alone. It was {friend}.",
	}
	if r.IntN(2) == 0 {
		list = append(list, `{hero} was shy, but {hero.he} said, "Hello. I am {hero}. Do you want to play with my {toy}?" {friend} smiled. "Yes! I am {friend}," {friend.he} said.`)
	} else {
		list = append(list, `The {toy} fell down, and {friend} picked it up. "Is this yours?" asked {friend}. "Yes, thank you," said {hero}. "[Do you want to play|Shall we play together]?"`)
	}
	return append(list,
		"They played until the sun went down. [The next day, they met again.|They saw a {animal} and gave it a name.] Soon they were best friends, and {hero} liked the new house very much.")
}

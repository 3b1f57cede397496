package main

// person is someone in a story, with the words that stand for them.
type person struct{ name, he, him, his string }

// The words that stories are told with.
var (
	girls = []string{"Lily", "Mia", "Anna", "Ella", "Zoe", "Nora", "Ruby", "Ivy", "Clara", "Maya", "Rosie", "Tess", "Emma", "Lucy", "Nina", "Ada"}
	boys  = []string{"Tom", "Ben", "Max", "Leo", "Sam", "Finn", "Jack", "Theo", "Noah", "Eli", "Oscar", "Hugo", "Milo", "Jonas", "Peter", "Adam"}

	animals  = []string{"rabbit", "fox", "duck", "kitten", "puppy", "hedgehog", "squirrel", "owl", "mouse", "turtle", "frog", "bear", "lamb", "goat", "robin", "pony"}
	places   = []string{"park", "garden", "forest", "beach", "meadow", "playground", "farm", "market", "library", "lake", "hill", "village"}
	toys     = []string{"ball", "kite", "doll", "drum", "boat", "puzzle", "train", "robot", "book", "whistle", "scarf", "basket", "lantern", "bell"}
	colours  = []string{"red", "blue", "green", "yellow", "orange", "purple", "white", "brown", "silver", "pink"}
	sizes    = []string{"big", "little", "tiny", "shiny", "old", "new", "round", "soft", "pretty", "funny"}
	natures  = []string{"kind", "brave", "curious", "quiet", "cheerful", "clever", "shy", "gentle", "playful", "patient"}
	foods    = []string{"apple", "cookie", "sandwich", "carrot", "pear", "cake", "plum", "bun", "pancake", "berry pie"}
	weathers = []string{"sunny", "windy", "cloudy", "warm", "cold", "bright", "rainy", "foggy"}
	elders   = []person{{"Mom", "she", "her", "her"}, {"Dad", "he", "him", "his"}, {"Grandma", "she", "her", "her"}, {"Grandpa", "he", "him", "his"}}
	skills   = []string{"ride a bike", "swim", "whistle", "paint", "skate", "sing", "bake bread", "climb a rope", "juggle", "play the drum"}
	seeds    = []string{"flower", "sunflower", "bean", "tomato", "pumpkin", "strawberry"}
	hides    = []string{"under the bed", "behind a tree", "in the tall grass", "next to a bench", "under a bush", "behind the shed", "on top of a rock", "inside a box"}
)

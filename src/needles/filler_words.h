// The vocabulary of the filler prose: plain word lists, one a part of speech. Private to this folder.
#pragma once

#include <string_view>

namespace modeld::filler {

using Words = std::string_view;

inline constexpr Words kPeople[] = {
    "baker",       "sailor",   "widow",      "schoolboy", "miller",     "clerk",       "gardener",   "nurse",
    "printer",     "shepherd", "carter",     "fisherman", "painter",    "merchant",    "soldier",    "weaver",
    "traveller",   "stranger", "magistrate", "farmer",    "apprentice", "cook",        "tinker",     "landlady",
    "physician",   "cobbler",  "mason",      "organist",  "porter",     "blacksmith",  "botanist",   "engineer",
    "inspector",   "boatman",  "drummer",    "editor",    "mapmaker",   "neighbour",   "orphan",     "pilgrim",
    "quarryman",   "refugee",  "seamstress", "teacher",   "usher",      "vicar",       "woodcutter", "youth",
    "beekeeper",   "cellist",  "dairymaid",  "explorer",  "falconer",   "governess",   "hermit",     "innkeeper",
    "lodger",      "midwife",  "notary",     "poacher",   "ranger",     "saddler",     "tollkeeper", "verger",
    "washerwoman", "coachman", "ploughman",  "surveyor",  "tutor",      "smuggler",    "typist",     "juggler",
    "bishop",      "grocer",   "carpenter",  "cousin",    "aunt",       "grandfather", "sister",     "nephew"};

inline constexpr Words kThings[] = {
    "lantern",     "basket",   "ladder",   "blanket",    "letter",   "kettle",       "saddle",    "ledger",
    "mirror",      "anchor",   "barrel",   "compass",    "drawer",   "envelope",     "feather",   "goblet",
    "hinge",       "inkwell",  "jug",      "kite",       "lock",     "map",          "needle",    "oar",
    "parcel",      "quilt",    "rope",     "shovel",     "trunk",    "umbrella",     "vase",      "wagon",
    "axe",         "bottle",   "candle",   "drum",       "easel",    "flute",        "glove",     "hammock",
    "bench",       "jar",      "knapsack", "loom",       "mallet",   "net",          "oven",      "pillow",
    "rake",        "scarf",    "table",    "urn",        "violet",   "wheel",        "almanac",   "bucket",
    "chimney",     "doorstep", "engine",   "fence",      "gate",     "handkerchief", "iron",      "jacket",
    "keyhole",     "lamp",     "magnet",   "notebook",   "ornament", "pipe",         "ribbon",    "stove",
    "telescope",   "uniform",  "veil",     "whistle",    "apron",    "bell",         "cradle",    "desk",
    "fiddle",      "globe",    "hat",      "instrument", "journal",  "knot",         "locket",    "mast",
    "newspaper",   "overcoat", "painting", "razor",      "sack",     "thimble",      "tray",      "bridge",
    "wall",        "boat",     "cart",     "clock",      "coat",     "pocket",       "plank",     "portrait",
    "pump",        "sail",     "screen",   "shelf",      "sledge",   "spade",        "statue",    "stool",
    "tent",        "tile",     "tower",    "well",       "window",   "chess set",    "hourglass", "fishing rod",
    "writing case"};

inline constexpr Words kPlaces[] = {
    "market",    "harbour",      "orchard",        "churchyard", "valley",     "meadow",       "kitchen",
    "courtyard", "forest",       "riverbank",      "station",    "library",    "workshop",     "village",
    "hillside",  "quay",         "garden",         "moor",       "canal",      "quarry",       "barn",
    "tavern",    "schoolroom",   "cloister",       "marsh",      "avenue",     "square",       "hospital",
    "bay",       "crossroads",   "dockyard",       "estuary",    "fairground", "glen",         "hamlet",
    "island",    "junction",     "kiln",           "lane",       "mill",       "nursery",      "observatory",
    "parlour",   "ridge",        "scullery",       "theatre",    "upland",     "vestry",       "wharf",
    "yard",      "alley",        "boarding house", "common",     "dairy",      "embankment",   "ford",
    "gallery",   "heath",        "infirmary",      "landing",    "monastery",  "north field",  "old town",
    "pasture",   "railway yard", "shore",          "terrace",    "vineyard",   "waiting room", "woodland"};

inline constexpr Words kTransitive[] = {
    "carried",      "mended",   "watched",  "forgot",      "painted",     "sold",       "borrowed", "hid",
    "polished",     "examined", "repaired", "described",   "abandoned",   "admired",    "bought",   "cleaned",
    "collected",    "counted",  "covered",  "delivered",   "discovered",  "drew",       "emptied",  "fetched",
    "filled",       "followed", "gathered", "guarded",     "heard of",    "inherited",  "judged",   "kicked",
    "lifted",       "lost",     "measured", "noticed",     "opened",      "ordered",    "packed",   "praised",
    "pulled",       "pushed",   "raised",   "recognised",  "refused",     "remembered", "returned", "saved",
    "searched for", "shook",    "sketched", "stole",       "studied",     "swept",      "tested",   "threw away",
    "touched",      "traded",   "tied up",  "turned over", "unlocked",    "valued",     "visited",  "waited for",
    "warmed",       "washed",   "weighed",  "wrapped",     "wrote about", "dragged",    "dropped",  "found",
    "dusted",       "chose",    "mistook",  "moved",       "labelled",    "kept",       "hung up",  "gave away"};

inline constexpr Words kIntransitive[] = {"slept",
                                          "waited",
                                          "sang",
                                          "laughed",
                                          "wandered",
                                          "argued",
                                          "knelt",
                                          "listened",
                                          "hesitated",
                                          "whistled",
                                          "shivered",
                                          "rested",
                                          "worked",
                                          "prayed",
                                          "stumbled",
                                          "grumbled",
                                          "nodded",
                                          "paused",
                                          "vanished",
                                          "smiled",
                                          "coughed",
                                          "danced",
                                          "dreamed",
                                          "fished",
                                          "frowned",
                                          "gossiped",
                                          "hurried",
                                          "knocked",
                                          "lingered",
                                          "marched",
                                          "muttered",
                                          "played cards",
                                          "quarrelled",
                                          "read aloud",
                                          "sighed",
                                          "stared at the fire",
                                          "stood quite still",
                                          "swam",
                                          "talked",
                                          "trembled",
                                          "turned back",
                                          "walked",
                                          "wept",
                                          "whispered",
                                          "yawned",
                                          "climbed",
                                          "counted the coins",
                                          "drank tea",
                                          "rowed home"};

inline constexpr Words kAdjectives[] = {
    "old",      "narrow",   "crooked",   "heavy",      "silent",    "broken",   "painted",  "foreign",   "cheerful",
    "dusty",    "yellow",   "patient",   "hollow",     "frozen",    "gentle",   "wooden",   "ragged",    "modest",
    "famous",   "lonely",   "bitter",    "bright",     "careless",  "damp",     "elegant",  "faded",     "greedy",
    "hungry",   "idle",     "jolly",     "kindly",     "large",     "muddy",    "nervous",  "ordinary",  "proud",
    "quiet",    "rusty",    "shallow",   "tall",       "ugly",      "velvet",   "weary",    "anxious",   "blue",
    "clumsy",   "distant",  "eager",     "fragile",    "green",     "honest",   "iron",     "knotted",   "leather",
    "mournful", "neat",     "obstinate", "plain",      "quick",     "round",    "stubborn", "thin",      "uneven",
    "vast",     "wild",     "abandoned", "borrowed",   "clever",    "delicate", "enormous", "forgotten", "golden",
    "handsome", "innocent", "lame",      "mysterious", "neglected", "odd",      "pale",     "restless",  "scarlet",
    "tidy",     "useful",   "valuable",  "warm",       "worn",      "brass",    "grey",     "tin",       "new",
    "second",   "spare",    "splendid",  "small",      "dark",      "draughty", "empty",    "sturdy",    "tangled",
    "striped"};

inline constexpr Words kAdverbs[] = {
    "slowly",         "carefully",       "gladly",          "in silence",        "without a word",
    "almost at once", "with great care", "rather badly",    "by candlelight",    "for no clear reason",
    "out of habit",   "once more",       "all alone",       "against advice",    "by mistake",
    "eagerly",        "with a shrug",    "in secret",       "at last",           "for a whole hour",
    "as usual",       "politely",        "with cold hands", "in the rain",       "far too early",
    "half asleep",    "very well",       "cautiously",      "without much hope", "in good humour",
    "reluctantly",    "bravely",         "under protest",   "twice a week",      "from memory",
    "quite openly"};

inline constexpr Words kTimes[] = {"In the spring",
                                   "That evening",
                                   "Before the thaw",
                                   "On market day",
                                   "Towards midnight",
                                   "At harvest time",
                                   "The following week",
                                   "During the long winter",
                                   "One grey afternoon",
                                   "After supper",
                                   "At first light",
                                   "Some years later",
                                   "On the eve of the fair",
                                   "Late in October",
                                   "When the tide was out",
                                   "All that summer",
                                   "Shortly before noon",
                                   "Every other Thursday",
                                   "On the last day of term",
                                   "After the funeral",
                                   "Between two storms",
                                   "In those days",
                                   "By the end of the month",
                                   "While the rest were at church",
                                   "Long before the railway came",
                                   "At the height of the drought",
                                   "Soon after the election",
                                   "A little after nine",
                                   "On her birthday",
                                   "In the coldest week of January",
                                   "Without any warning",
                                   "Not for the first time"};

inline constexpr Words kAbstract[] = {
    "patience", "fortune",  "rumour",   "silence", "kindness", "weather",   "courage",   "gratitude",
    "ambition", "memory",   "thrift",   "envy",    "justice",  "hope",      "curiosity", "discipline",
    "grief",    "habit",    "luck",     "pride",   "reason",   "suspicion", "trust",     "vanity",
    "wisdom",   "boredom",  "charity",  "debt",    "faith",    "freedom",   "haste",     "honesty",
    "hunger",   "idleness", "laughter", "mercy",   "music",    "obedience", "peace",     "regret",
    "scandal",  "sleep",    "talent",   "travel",  "work",     "youth"};

inline constexpr Words kNature[] = {"rain",        "wind",   "fog",      "snow",   "thunder",  "moonlight", "frost",
                                    "ivy",         "smoke",  "sunshine", "river",  "tide",     "hail",      "dust",
                                    "heat",        "mist",   "rooks",    "gulls",  "swallows", "geese",     "crickets",
                                    "wolves",      "bees",   "sheep",    "crows",  "poplars",  "nettles",   "brambles",
                                    "apple trees", "clouds", "waves",    "shadows"};
inline constexpr Words kNatureVerbs[] = {
    "crept over",  "settled on",      "came down upon", "rose behind",   "moved across",     "hung about",
    "passed over", "gathered around", "filled",         "swept through", "turned away from", "surrounded",
    "lay beyond",  "drifted past",    "disturbed",      "spoiled",       "brightened",       "returned to"};
inline constexpr Words kMeasures[] = {"paces", "miles",   "feet",  "shillings", "pounds", "hours",
                                      "steps", "barrels", "acres", "yards",     "crowns", "loaves"};
inline constexpr Words kLinks[] = {"because", "although",   "while",       "so that in the end", "until",
                                   "before",  "as soon as", "even though", "and meanwhile",      "but"};
inline constexpr Words kSayings[] = {
    "It is a poor bargain",       "There is no hurry",         "Nobody will thank us",
    "I have seen worse",          "You may ask whom you like", "That was never the plan",
    "We ought to have known",     "Leave it where it is",      "It cannot be helped",
    "Somebody must pay for this", "I would not swear to it",   "Tell it again from the start"};
inline constexpr Words kSaid[] = {"said",     "answered", "remarked", "thought",
                                  "repeated", "insisted", "shouted",  "admitted"};

}  // namespace modeld::filler

#include "needles/facts.h"

#include <array>

namespace modeld::facts {
namespace {

using Words = std::string_view;

constexpr std::array kSingle = {
    SingleRow{"secret number", "lighthouse keeper", Pool::digits},
    SingleRow{"locker number", "swimming teacher", Pool::digits},
    SingleRow{"licence number", "ferry pilot", Pool::digits},
    SingleRow{"badge number", "night porter", Pool::digits},
    SingleRow{"ticket number", "opera singer", Pool::digits},
    SingleRow{"cabin number", "ship's surgeon", Pool::digits},
    SingleRow{"account number", "glass blower", Pool::digits},
    SingleRow{"serial number", "weather balloon", Pool::digits},
    SingleRow{"combination", "museum safe", Pool::digits},
    SingleRow{"passcode", "greenhouse door", Pool::digits},
    SingleRow{"registration number", "postal van", Pool::digits},
    SingleRow{"catalogue number", "marble statue", Pool::digits},
    SingleRow{"invoice number", "piano tuner", Pool::digits},
    SingleRow{"telephone extension", "chief librarian", Pool::digits},
    SingleRow{"weight in grams", "meteorite", Pool::digits},
    SingleRow{"height in feet", "radio mast", Pool::digits},
    SingleRow{"parcel number", "clock repairer", Pool::digits},
    SingleRow{"membership number", "chess champion", Pool::digits},
    SingleRow{"room number", "visiting professor", Pool::digits},
    SingleRow{"patent number", "bicycle lamp", Pool::digits},
    SingleRow{"flight number", "supply aeroplane", Pool::digits},
    SingleRow{"tag number", "oldest tortoise", Pool::digits},
    SingleRow{"file number", "missing painting", Pool::digits},
    SingleRow{"print number", "botanical engraving", Pool::digits},
    SingleRow{"favourite colour", "harbour pilot", Pool::colour},
    SingleRow{"colour", "curtain in the ballroom", Pool::colour},
    SingleRow{"colour", "signal lamp on the pier", Pool::colour},
    SingleRow{"colour", "captain's umbrella", Pool::colour},
    SingleRow{"hair colour", "puppet king", Pool::colour},
    SingleRow{"colour", "winning kite", Pool::colour},
    SingleRow{"pet", "station master", Pool::animal},
    SingleRow{"mascot", "rowing club", Pool::animal},
    SingleRow{"animal on the flag", "sailing school", Pool::animal},
    SingleRow{"emblem", "watchmakers' guild", Pool::animal},
    SingleRow{"animal on the seal", "mountain parish", Pool::animal},
    SingleRow{"favourite animal", "youngest juggler", Pool::animal},
    SingleRow{"favourite fruit", "circus strongman", Pool::fruit},
    SingleRow{"flavour", "birthday pudding", Pool::fruit},
    SingleRow{"filling", "prize-winning tart", Pool::fruit},
    SingleRow{"fruit on the label", "jam factory", Pool::fruit},
    SingleRow{"main crop", "island orchard", Pool::fruit},
    SingleRow{"scent", "barber's soap", Pool::fruit},
    SingleRow{"metal", "largest bell", Pool::metal},
    SingleRow{"material", "conductor's baton", Pool::metal},
    SingleRow{"metal", "garden gate", Pool::metal},
    SingleRow{"metal", "runner-up medal", Pool::metal},
    SingleRow{"coating", "telescope mirror", Pool::metal},
    SingleRow{"wood", "judge's gavel", Pool::tree},
    SingleRow{"tree in the courtyard", "girls' college", Pool::tree},
    SingleRow{"timber", "covered footbridge", Pool::tree},
    SingleRow{"wood", "carved rocking horse", Pool::tree},
    SingleRow{"favourite drink", "retired admiral", Pool::drink},
    SingleRow{"speciality", "riverside cafe", Pool::drink},
    SingleRow{"evening drink", "watch officer", Pool::drink},
    SingleRow{"breakfast drink", "marathon winner", Pool::drink},
    SingleRow{"fabric", "magician's cloak", Pool::cloth},
    SingleRow{"lining", "violin case", Pool::cloth},
    SingleRow{"cloth", "theatre seats", Pool::cloth},
    SingleRow{"wrapping", "ambassador's gift", Pool::cloth},
    SingleRow{"gem", "stolen necklace", Pool::stone},
    SingleRow{"stone", "duchess's brooch", Pool::stone},
    SingleRow{"lucky stone", "goalkeeper", Pool::stone},
    SingleRow{"tool on the sign", "village smithy", Pool::tool},
    SingleRow{"lost tool", "roof thatcher", Pool::tool},
    SingleRow{"symbol", "carpenters' union", Pool::tool},
    SingleRow{"best-selling tool", "corner ironmonger", Pool::tool},
};

constexpr std::array<Words, 12> kColours = {"turquoise", "crimson", "violet", "orange", "amber",  "scarlet",
                                            "emerald",   "maroon",  "indigo", "yellow", "silver", "lavender"};
constexpr std::array<Words, 12> kAnimals = {"otter", "badger",  "penguin",  "giraffe", "falcon", "hedgehog",
                                            "tiger", "dolphin", "squirrel", "lobster", "zebra",  "walrus"};
constexpr std::array<Words, 12> kFruits = {"apricot", "cherry",    "mango", "pineapple", "lemon", "raspberry",
                                           "plum",    "blueberry", "peach", "quince",    "melon", "banana"};
constexpr std::array<Words, 8> kMetals = {"copper", "tin", "titanium", "zinc", "nickel", "platinum", "bronze", "lead"};
constexpr std::array<Words, 8> kTrees = {"walnut", "chestnut", "birch", "maple", "willow", "mahogany", "elm", "beech"};
constexpr std::array<Words, 8> kDrinks = {"coffee",      "cocoa",      "lemonade",  "cider",
                                          "ginger beer", "buttermilk", "green tea", "tomato juice"};
constexpr std::array<Words, 8> kCloths = {"velvet", "linen", "silk", "cotton", "satin", "canvas", "flannel", "denim"};
constexpr std::array<Words, 8> kStones = {"ruby", "opal", "sapphire", "topaz", "garnet", "diamond", "pearl", "jade"};
constexpr std::array<Words, 8> kTools = {"hammer", "chisel",      "pliers", "spanner",
                                         "ladder", "wheelbarrow", "trowel", "screwdriver"};

constexpr std::array<Words, 76> kCities = {
    "Lisbon",     "Oslo",      "Nairobi",   "Toronto",   "Warsaw",    "Santiago", "Helsinki",  "Bangkok", "Denver",
    "Glasgow",    "Hamburg",   "Kyoto",     "Lima",      "Madrid",    "Naples",   "Ottawa",    "Prague",  "Quito",
    "Riga",       "Seattle",   "Tunis",     "Utrecht",   "Vienna",    "Zagreb",   "Amsterdam", "Boston",  "Chicago",
    "Dublin",     "Edinburgh", "Florence",  "Geneva",    "Havana",    "Istanbul", "Jakarta",   "Karachi", "London",
    "Manila",     "Mumbai",    "Osaka",     "Paris",     "Reykjavik", "Seoul",    "Sydney",    "Tokyo",   "Valencia",
    "Wellington", "Zurich",    "Baltimore", "Brussels",  "Cardiff",   "Dakar",    "Dresden",   "Houston", "Krakow",
    "Leipzig",    "Melbourne", "Miami",     "Montreal",  "Moscow",    "Munich",   "Nagoya",    "Phoenix", "Porto",
    "Rotterdam",  "Salzburg",  "Shanghai",  "Singapore", "Stockholm", "Tallinn",  "Vancouver", "Venice",  "Vilnius",
    "Winnipeg",   "Bogota",    "Budapest",  "Caracas"};

constexpr std::array<Words, 8> kSpots = {"bakery",   "chapel",  "sawmill", "tannery",
                                         "windmill", "laundry", "brewery", "schoolhouse"};
constexpr std::array<Words, 8> kRooms = {"attic",      "pantry",    "stable",    "cellar",
                                         "greenhouse", "boathouse", "tool shed", "chicken coop"};
constexpr std::array<Words, 8> kTrades = {"baker",   "plumber", "surgeon", "tailor",
                                          "dentist", "butcher", "florist", "goldsmith"};
constexpr std::array<Words, 8> kDishes = {"pancakes",  "onion soup", "dumplings",  "roast duck",
                                          "mushrooms", "lentils",    "fried eggs", "oysters"};
constexpr std::array<Words, 8> kCauses = {"pollen", "wool",         "peanuts",  "shellfish",
                                          "dust",   "strawberries", "feathers", "latex"};
constexpr std::array<Words, 8> kPets = {"parrot",   "tortoise", "rabbit", "greyhound",
                                        "goldfish", "hamster",  "poodle", "canary"};
constexpr std::array<Words, 8> kLands = {"Portugal", "Norway", "Brazil", "Japan", "Kenya", "Iceland", "Greece", "Peru"};
constexpr std::array<Words, 8> kSports = {"fencing", "archery",   "rowing",  "wrestling",
                                          "cycling", "badminton", "skating", "polo"};
constexpr std::array<Words, 8> kRides = {"tricycle", "motorcycle", "canoe", "tractor",
                                         "sledge",   "donkey",     "tram",  "rowing boat"};
constexpr std::array<Words, 8> kFears = {"spiders", "lightning", "heights", "snakes",
                                         "bats",    "ghosts",    "wasps",   "thunder"};
constexpr std::array<Words, 8> kPlaying = {"the cello", "the trumpet",   "the harp",     "the banjo",
                                           "the flute", "the accordion", "the bagpipes", "the oboe"};

constexpr std::array kParaphrase = {
    ParaphraseRow{"The old violin of {} is kept behind the ", ".",
                  "In which place could someone find {}'s musical instrument?", "Someone could find it behind the",
                  kSpots},
    ParaphraseRow{"{} buried a fortune under the ", " long ago.", "Where did {} hide the money?",
                  "The money is under the", kSpots},
    ParaphraseRow{"For thirty years {} earned a living as a ", ".", "What was {}'s profession?",
                  "The profession was that of a", kTrades},
    ParaphraseRow{"{} is married to a ", " from the coast.", "What job does the spouse of {} do?",
                  "The spouse works as a", kTrades},
    ParaphraseRow{"{} sneezes and itches near ", ".", "Which allergy does {} suffer from?", "The allergy is to",
                  kCauses},
    ParaphraseRow{"Nothing frightens {} as much as ", ".", "What phobia does {} have?", "The phobia is a fear of",
                  kFears},
    ParaphraseRow{"{} was born in ", ".", "Which country does {} originally come from?", "The country is", kLands},
    ParaphraseRow{"Last summer {} spent the holidays in ", ".", "Which nation did {} visit on vacation?",
                  "The nation visited was", kLands},
    ParaphraseRow{"{} shares a home with a ", ".", "What kind of pet does {} own?", "The pet is a", kPets},
    ParaphraseRow{"{} commutes to the office by ", ".", "What means of transport gets {} to work?",
                  "The means of transport is a", kRides},
    ParaphraseRow{"At every wedding {} performs on ", ".", "Which musical instrument can {} play?",
                  "The musical instrument is", kPlaying},
    ParaphraseRow{"{} won a gold medal in ", ".", "At what sport did {} become a champion?", "The sport was", kSports},
    ParaphraseRow{"{} likes nothing better for dinner than ", ".", "What is the favourite food of {}?",
                  "The favourite food is", kDishes},
    ParaphraseRow{"The wine that {} bottled is stored in the ", ".", "Where does {} keep alcoholic drinks?",
                  "The alcoholic drinks are in the", kRooms},
    ParaphraseRow{"During the storm {} took shelter in the ", ".", "Where was {} while the bad weather lasted?",
                  "While the bad weather lasted it was the", kRooms},
    ParaphraseRow{"{} mislaid the spectacles in the ", ".", "Where did {} lose a pair of glasses?",
                  "The pair of glasses was lost in the", kRooms},
};

constexpr std::array<Words, 64> kFirst = {
    "Martha",  "Edwin",   "Clara",    "Oscar",    "Beatrice", "Rupert", "Harriet",  "Leonard", "Winifred", "Cedric",
    "Agatha",  "Bertram", "Cordelia", "Desmond",  "Edith",    "Felix",  "Gertrude", "Horace",  "Imogen",   "Jasper",
    "Katrina", "Lionel",  "Mabel",    "Norbert",  "Olive",    "Percy",  "Queenie",  "Roland",  "Sybil",    "Thaddeus",
    "Ursula",  "Victor",  "Wanda",    "Xavier",   "Yvonne",   "Zelda",  "Arnold",   "Bridget", "Clifford", "Dorothy",
    "Ernest",  "Flora",   "Gilbert",  "Hilda",    "Ivor",     "Judith", "Kenneth",  "Lavinia", "Maurice",  "Nora",
    "Osbert",  "Phyllis", "Quentin",  "Rosalind", "Stanley",  "Thelma", "Uriel",    "Vera",    "Wallace",  "Yolanda",
    "Alma",    "Basil",   "Celeste",  "Dexter"};
constexpr std::array<Words, 64> kLast = {
    "Quill",      "Ashdown",    "Pemberton",    "Fenwick",   "Hargrove",   "Whitlock",  "Thornbury", "Mortlake",
    "Pettigrew",  "Larkin",     "Dunmore",      "Saltmarsh", "Oakley",     "Crabtree",  "Winslow",   "Hathaway",
    "Bramble",    "Kettering",  "Lovelace",     "Marchbank", "Norwood",    "Ormsby",    "Prescott",  "Ravenhill",
    "Stanhope",   "Tiverton",   "Underhill",    "Vickers",   "Waverley",   "Yardley",   "Abernathy", "Birtwistle",
    "Chadwick",   "Dalrymple",  "Eastwood",     "Farnham",   "Goodfellow", "Holloway",  "Ingram",    "Jessop",
    "Kirkwood",   "Lockhart",   "Merriweather", "Nettleton", "Openshaw",   "Pickering", "Quimby",    "Rutherford",
    "Sedgwick",   "Tattersall", "Upjohn",       "Venables",  "Wetherby",   "Yelverton", "Armitage",  "Buckland",
    "Carmichael", "Duckworth",  "Elphinstone",  "Foxglove",  "Greenhalgh", "Hollister", "Inglewood", "Jellicoe"};

}  // namespace

std::span<const SingleRow> single_rows() { return kSingle; }
std::span<const std::string_view> cities() { return kCities; }
std::span<const ParaphraseRow> paraphrase_rows() { return kParaphrase; }
std::span<const std::string_view> first_names() { return kFirst; }
std::span<const std::string_view> last_names() { return kLast; }

std::span<const std::string_view> pool_words(Pool pool) {
  switch (pool) {
    case Pool::digits:
      return {};
    case Pool::colour:
      return kColours;
    case Pool::animal:
      return kAnimals;
    case Pool::fruit:
      return kFruits;
    case Pool::metal:
      return kMetals;
    case Pool::tree:
      return kTrees;
    case Pool::drink:
      return kDrinks;
    case Pool::cloth:
      return kCloths;
    case Pool::stone:
      return kStones;
    case Pool::tool:
      return kTools;
    case Pool::spot:
      return kSpots;
    case Pool::room:
      return kRooms;
    case Pool::trade:
      return kTrades;
    case Pool::dish:
      return kDishes;
    case Pool::cause:
      return kCauses;
    case Pool::pet:
      return kPets;
    case Pool::land:
      return kLands;
    case Pool::sport:
      return kSports;
    case Pool::ride:
      return kRides;
    case Pool::fear:
      return kFears;
    case Pool::instrument:
      return kPlaying;
  }
  return {};
}

}  // namespace modeld::facts

"""Letters whose case Spark changes in another way than engines that go letter by letter."""
LETTERS = {"LOWER": ("İ", "i"), "UPPER": ("ß", "ẞ")}

"""KLCF's prompts. They are ours: the paper does not print its own."""

# Before each question in training and evaluation.
SYSTEM = (
    "Think between <think> and </think> about what you know. Then write the whole answer, with"
    " all facts that you are sure of, between <answer> and </answer>."
)
# Before each question that the base model answers. It follows no instructions, so example answers
# show it the form; the paper's prompt has ten.
SHOTS = (
    "Questions and their answers, full of facts and without any opinion.\n\nQuestion: What is the"
    " Moon?\nAnswer: The Moon is the only natural satellite of the Earth. It orbits the Earth at a"
    " mean distance of about 384,400 kilometres. One orbit takes about 27.3 days. The first people"
    " landed on it in 1969.\n\nQuestion: Tell me about Marie Curie.\nAnswer: Marie Curie was a"
    " physicist and chemist. She was born in Warsaw in 1867. She discovered polonium and radium."
    " She won the Nobel Prize in Physics in 1903 and that in Chemistry in 1911.\n\nQuestion: How is"
    " paper made?\nAnswer: Most paper is made from wood. The wood is turned into a pulp of fibres"
    " in water. The pulp is spread on a screen, where the water drains off. The sheet is then"
    " pressed and dried.\n\nAnswer the next question in the same way."
)

"""A Transformer that learns to translate, in one file of Python and numpy.

    python docs/microdragoman.py                a corpus that this file makes itself
    python docs/microdragoman.py pairs.tsv      your own: source, tab, target, one pair per line

Read it from top to bottom: text, parameters, layers, the model, learning, translating. Sections and
equations are those of "Attention Is All You Need" (Vaswani et al., 2017). The package dragoman
computes the same, faster and with everything around it.

Shapes: B sentences of T target and S source tokens, h heads, D = d_model, V words.
"""

import random
import re
import sys
import time
from collections import Counter

import numpy as np

PAD, BEGIN, END, UNKNOWN = range(4)

# ---------------------------------------------------------------------------------------- 1. Text

ANIMALS = ("dog m Hund", "cat f Katze", "horse n Pferd", "bear m Bär", "cow f Kuh", "sheep n Schaf")
PLACES = ("street f Straße", "river m Fluss", "field n Feld", "bridge f Brücke", "lake m See")
VERBS = ("cross überquert", "pass passiert", "reach erreicht")
LOOKS = ("small klein", "old alt", "new neu", "beautiful schön")
REASONS = ("tired müde", "hungry hungrig", "weak schwach", "wide breit", "long lang", "far weit")
NOMINATIVE = {"m": "der", "f": "die", "n": "das"}
ACCUSATIVE = NOMINATIVE | {"m": "den"}
PRONOUN = {"m": "er", "f": "sie", "n": "es"}


def make_pair(draw):
    """Return an English sentence, its translation, and whether these words are held out together.
    "It" is the animal if it is tired, and the place if it is wide: er, sie or es."""
    rows = [draw.choice(one) for one in (ANIMALS, PLACES, VERBS, LOOKS, LOOKS, REASONS)]
    (animal, gender, tier), (place, by, ort), (verb, tut), *words = (one.split() for one in rows)
    (look, klein), (other, alt), (reason, grund) = words
    does, nicht = draw.choice([(f"does not {verb}", " nicht"), (f"{verb}es", "")])
    it = PRONOUN[gender if REASONS.index(rows[-1]) < 3 else by]
    english = f"the {look} {animal} {does} the {other} {place} because it is too {reason} ."
    german = (
        f"{NOMINATIVE[gender]} {klein}e {tier} {tut} {ACCUSATIVE[by]} "
        f"{alt}{'en' if by == 'm' else 'e'} {ort}{nicht} , weil {it} zu {grund} ist ."
    )
    return english, german, (ANIMALS.index(rows[0]) + PLACES.index(rows[1])) % 6 == 0


def words_of(text):
    return re.findall(r"\w+|[^\w\s]", text)


def to_ids(texts, vocabulary):
    """Return (B, T) token ids with an end symbol, padded to the longest."""
    rows = [[vocabulary.get(word, UNKNOWN) for word in words_of(text)] + [END] for text in texts]
    longest = max(map(len, rows))
    return np.array([row + [PAD] * (longest - len(row)) for row in rows])


# ---------------------------------------------------------------------------------- 2. Parameters


def make_parameters(vocabulary, width=64, inner=256, layers=2, seed=1):
    """Return the parameters by name. Matrices are (out, in); one matrix of embeddings, (V, D),
    serves source, target and output (section 3.4)."""
    draw = np.random.default_rng(seed)
    made = {"source_embedding.weight": draw.normal(0, width**-0.5, (vocabulary, width))}

    def linear(name, out, into):
        limit = (6 / (out + into)) ** 0.5
        made[f"{name}.weight"] = draw.uniform(-limit, limit, (out, into))
        made[f"{name}.bias"] = np.zeros(out)

    def norm(name):
        made[f"{name}_norm.weight"], made[f"{name}_norm.bias"] = np.ones(width), np.zeros(width)

    for number in range(layers):
        for name in ("encoder.{}.attention", "decoder.{}.self_attention",
                     "decoder.{}.cross_attention"):  # fmt: skip
            for part in ("query", "key", "value", "output"):
                linear(f"{name.format(number)}.{part}", width, width)
            norm(name.format(number))
        for side in ("encoder", "decoder"):
            linear(f"{side}.{number}.feed_forward.inner", inner, width)
            linear(f"{side}.{number}.feed_forward.outer", width, inner)
            norm(f"{side}.{number}.feed_forward")
    return {name: value.astype(np.float32) for name, value in made.items()}


# -------------------------------------------------------------------------------------- 3. Layers


class Transformer:
    """The model: its parameters ``p``, and their gradients ``g``, which ``backward`` sums up.

    Each layer appends its output to ``tape``, with a function that turns the gradient of the loss
    by that output into gradients by its inputs. ``backward`` goes through the tape from its end.
    """

    def __init__(self, parameters, heads=4):
        self.p, self.heads, self.tape = parameters, heads, []
        self.g = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.layers = sum(name.startswith("encoder") for name in parameters) // 16

    def record(self, output, back):
        self.tape.append((output, back))
        return output

    def backward(self, output, gradient):
        known = {id(output): gradient}
        while self.tape:
            output, back = self.tape.pop()
            for given, d in back(known.pop(id(output))):
                known[id(given)] = known.get(id(given), 0) + d

    def linear(self, name, x):
        """(…, into) -> (…, out): x W^T + b."""
        weight = self.p[f"{name}.weight"]

        def back(d):
            rows = d.reshape(-1, d.shape[-1])
            self.g[f"{name}.weight"] += rows.T @ x.reshape(-1, x.shape[-1])
            self.g[f"{name}.bias"] += rows.sum(0)
            return [(x, d @ weight)]

        return self.record(x @ weight.T + self.p[f"{name}.bias"], back)

    def attention(self, name, x, memory, hidden):
        """The rows of ``x`` (B, T, D) attend to those of ``memory`` (B, S, D) in h heads, except
        where ``hidden`` (B or 1, 1, T or 1, S): softmax(Q K^T / sqrt(d_k)) V (equation 1). The
        result is added to ``x`` and normalised."""

        def split(rows):  # (B, T, D) -> (B, h, T, d_k)
            return rows.reshape(*rows.shape[:2], self.heads, -1).swapaxes(1, 2)

        def join(rows):
            return rows.swapaxes(1, 2).reshape(len(rows), rows.shape[2], -1)

        queries = self.linear(f"{name}.query", x)
        keys, values = (self.linear(f"{name}.{part}", memory) for part in ("key", "value"))
        q, k, v = split(queries), split(keys), split(values)
        scale = q.shape[-1] ** -0.5
        scores = np.where(hidden, -1e9, q @ k.swapaxes(-1, -2) * scale)  # (B, h, T, S)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)

        def back(d):
            d = split(d)
            d_weights = d @ v.swapaxes(-1, -2)
            d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True)) * scale
            return [(queries, join(d_scores @ k)), (keys, join(d_scores.swapaxes(-1, -2) @ q)),
                    (values, join(weights.swapaxes(-1, -2) @ d))]  # fmt: skip

        y = self.linear(f"{name}.output", self.record(join(weights @ v), back))
        return self.add_and_norm(name, x, y)

    def feed_forward(self, name, x):
        """max(0, x W_1 + b_1) W_2 + b_2 (equation 2), added to ``x`` and normalised."""
        y = self.linear(f"{name}.inner", x)
        z = self.record(np.maximum(y, 0), lambda d: [(y, d * (y > 0))])
        return self.add_and_norm(name, x, self.linear(f"{name}.outer", z))

    def add_and_norm(self, name, x, y):
        """Normalise the sum of a layer's input and output (section 3.1)."""
        total = x + y
        deviation = np.sqrt(total.var(-1, keepdims=True) + 1e-5)
        normal = (total - total.mean(-1, keepdims=True)) / deviation
        weight = self.p[f"{name}_norm.weight"]

        def back(d):
            self.g[f"{name}_norm.weight"] += (d * normal).sum((0, 1))
            self.g[f"{name}_norm.bias"] += d.sum((0, 1))
            d = d * weight
            d = d - d.mean(-1, keepdims=True) - normal * (d * normal).mean(-1, keepdims=True)
            return [(x, d / deviation), (y, d / deviation)]

        return self.record(normal * weight + self.p[f"{name}_norm.bias"], back)

    def embed(self, ids):
        """Embeddings times sqrt(D), plus sines and cosines of the positions (sections 3.4, 3.5)."""
        table, length = self.p["source_embedding.weight"], ids.shape[1]
        width = table.shape[1]
        angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
        places = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, width)

        def back(d):
            np.add.at(self.g["source_embedding.weight"], ids, d * width**0.5)
            return []

        return self.record(table[ids] * width**0.5 + places.astype(table.dtype), back)

    # ------------------------------------------------------------------------------- 4. The model

    def encode(self, source):
        """(B, S) ids -> (B, S, D) memory: N layers of self-attention and feed-forward."""
        x, padding = self.embed(source), (source == PAD)[:, None, None, :]
        for name in (f"encoder.{number}" for number in range(self.layers)):
            x = self.attention(f"{name}.attention", x, x, padding)
            x = self.feed_forward(f"{name}.feed_forward", x)
        return x

    def decode(self, target, memory, source):
        """(B, T) ids -> (B, T, V) logits of the next tokens. A token attends to itself, to the
        tokens before it, and to all of the memory."""
        later = np.triu(np.ones((target.shape[1],) * 2, bool), 1)[None, None]
        x, padding = self.embed(target), (source == PAD)[:, None, None, :]
        for name in (f"decoder.{number}" for number in range(self.layers)):
            x = self.attention(f"{name}.self_attention", x, x, later)
            x = self.attention(f"{name}.cross_attention", x, memory, padding)
            x = self.feed_forward(f"{name}.feed_forward", x)
        table = self.p["source_embedding.weight"]

        def back(d):
            self.g["source_embedding.weight"] += np.tensordot(d, x, ((0, 1), (0, 1)))
            return [(x, d @ table)]

        return self.record(x @ table.T, back)

    def learn(self, source, target, smoothing=0.1):
        """Add up the gradients of the mean loss of a token, and return the loss. Each token is
        predicted from the right ones before it; the wanted distribution gives ``smoothing`` of the
        probability to all tokens alike (section 5.4)."""
        shifted = np.concatenate([np.full((len(target), 1), BEGIN), target[:, :-1]], 1)
        logits = self.decode(shifted, self.encode(source), source)
        logs = logits - logits.max(-1, keepdims=True)
        logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
        wanted = np.full_like(logs, smoothing / logs.shape[-1])
        np.put_along_axis(wanted, target[..., None], wanted.flat[0] + 1 - smoothing, -1)
        share = (target != PAD)[..., None] / (target != PAD).sum()
        self.backward(logits, ((np.exp(logs) - wanted) * share).astype(logits.dtype))
        return -(wanted * logs * share).sum()


# ------------------------------------------------------------------------------------ 5. Learning


def train(model, pairs, vocabulary, updates=600, sentences=64, warmup=200):
    """Adam (section 5.3), with the paper's rate: it rises for ``warmup`` updates, then falls with
    the inverse square root of their number (equation 3)."""
    draw, began = random.Random(1), time.perf_counter()
    width = model.p["source_embedding.weight"].shape[1]
    moments = {name: np.zeros((2, *value.shape), value.dtype) for name, value in model.p.items()}
    for step in range(1, updates + 1):
        chosen = draw.sample(pairs, min(sentences, len(pairs)))
        loss = model.learn(*(to_ids(side, vocabulary) for side in zip(*chosen, strict=True)))
        rate = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        for name, g in model.g.items():
            m, v = moments[name]
            m += 0.1 * (g - m)
            v += 0.02 * (g * g - v)
            m, v = m / (1 - 0.9**step), v / (1 - 0.98**step)
            model.p[name] -= (rate * m / (np.sqrt(v) + 1e-9)).astype(g.dtype)
            g[...] = 0
        if step % 100 == 0:
            print(f"update {step}: loss {loss:.3f}, {time.perf_counter() - began:.0f} s")


# --------------------------------------------------------------------------------- 6. Translating


def translate(model, texts, vocabulary, longest=60):
    """Append the most probable token again and again, until all sentences have ended."""
    source = to_ids(texts, vocabulary)
    memory, written = model.encode(source), np.full((len(texts), 1), BEGIN)
    while written.shape[1] <= longest and not (written == END).any(1).all():
        logits = model.decode(written, memory, source)
        written = np.concatenate([written, logits[:, -1:].argmax(-1)], 1)
    model.tape.clear()
    words = {number: word for word, number in vocabulary.items()}
    rows = ([*row[1:], END] for row in written)
    return [" ".join(words.get(i, "?") for i in row[: row.index(END)]) for row in rows]


def main(*files):
    if files:
        with open(files[0], encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t")[:2] for line in file if "\t" in line]
        pairs, unseen = [row for n, row in enumerate(rows) if n % 50], rows[::50]
    else:
        draw = random.Random(0)
        rows = [make_pair(draw) for _ in range(20_000)]
        pairs, unseen = ([row[:2] for row in rows if row[2] == part] for part in (False, True))
    counts = Counter(word for pair in pairs for text in pair for word in words_of(text))
    vocabulary = {word: number for number, (word, _) in enumerate(counts.most_common(4000), 4)}
    model = Transformer(make_parameters(4 + len(vocabulary)))
    size = sum(value.size for value in model.p.values())
    print(f"{len(pairs):,} pairs, {len(vocabulary):,} words, {size:,} parameters")
    train(model, pairs, vocabulary)
    found = translate(model, [source for source, _ in unseen[:500]], vocabulary)
    right = sum(a == " ".join(words_of(b)) for a, (_, b) in zip(found, unseen, strict=False))
    print(f"{right} of {len(found)} unseen sentences are translated like the reference. Some:")
    for (source, _), text in list(zip(unseen, found, strict=False))[:6]:
        print(f"  {source}\n  {text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])

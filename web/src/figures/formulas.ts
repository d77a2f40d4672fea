// The formulas of captions as MathML: captions hold them as plain text, for terminals and files too.

/** An element of MathML, or the text of one. */
export type Node = string | { tag: string; inside: Node[] };

type Build = (...inside: Node[]) => Node;

const element =
  (tag: string): Build =>
  (...inside) => ({ tag, inside });
const mi = element("mi");
const mn = element("mn");
const mo = element("mo");
const row = element("mrow");
const sup = element("msup");
const sub = element("msub");
const frac = element("mfrac");
const root = element("msqrt");
const parens = (...inside: Node[]): Node => row(mo("("), ...inside, mo(")"));
const call = (name: string, ...inside: Node[]): Node => row(mi(name), parens(...inside));

const APPLIED = mo("\u2061"); // a function applied to what follows: nothing is drawn
const [DOT, MINUS, PLUS, IS, TIMES] = ["·", "−", "+", "=", "×"].map((sign) => mo(sign)) as [Node, Node, Node, Node, Node];
const D_K = sub(mi("d"), mi("k"));
const D_MODEL = sub(mi("d"), mi("model"));
const SCORES = row(mi("Q"), sup(mi("K"), mi("T")));
const SCALED = frac(SCORES, root(D_K));
const W_Q = sup(mi("W"), mi("Q"));

function minusPower(base: Node, exponent: string): Node {
  return sup(base, row(MINUS, mn(exponent)));
}

function penalty(length: Node): Node {
  return sup(parens(frac(row(mn("5"), PLUS, length), mn("6"))), mi("α"));
}

const FORMULAS: Record<string, Node> = {
  "PE(pos, 2i) = sin(pos / 10000^(2i/d))": row(
    call("PE", mi("pos"), mo(","), mn("2"), mi("i")), IS,
    call("sin", frac(mi("pos"), sup(mn("10000"), row(mn("2"), mi("i"), mo("/"), mi("d"))))),
  ),
  "PE(pos, 2i+1)": call("PE", mi("pos"), mo(","), mn("2"), mi("i"), PLUS, mn("1")),
  "sin a sin b + cos a cos b = cos(a − b)": row(
    mi("sin"), APPLIED, mi("a"), mi("sin"), APPLIED, mi("b"), PLUS, mi("cos"), APPLIED, mi("a"), mi("cos"), APPLIED, mi("b"), IS,
    call("cos", mi("a"), MINUS, mi("b")),
  ),
  "PE(i) · PE(i+Δ) = Σ cos(ω_k Δ)": row(
    call("PE", mi("i")), DOT, call("PE", mi("i"), PLUS, mi("Δ")), IS,
    sub(mo("∑"), mi("k")), call("cos", sub(mi("ω"), mi("k")), mi("Δ")),
  ),
  "ω_k = 10000^(−2k/512)": row(sub(mi("ω"), mi("k")), IS, sup(mn("10000"), row(MINUS, mn("2"), mi("k"), mo("/"), mn("512")))),
  "softmax(Q Kᵀ / √d_k) V": row(call("softmax", SCALED), mi("V")),
  "Q Kᵀ / √d_k": SCALED,
  "Q Kᵀ": SCORES,
  "1 − Σp²": row(mn("1"), MINUS, mo("∑"), sup(mi("p"), mn("2"))),
  "|W^Q|²": sup(row(mo("|"), W_Q, mo("|")), mn("2")),
  "W^Q": W_Q,
  "W^O": sup(mi("W"), mi("O")),
  "d_model × d_k": row(D_MODEL, TIMES, D_K),
  "lrate = d_model^−0.5 · min(step^−0.5, step · warmup^−1.5)": row(
    mi("lrate"), IS, minusPower(D_MODEL, "0.5"), DOT,
    call("min", minusPower(mi("step"), "0.5"), mo(","), mi("step"), DOT, minusPower(mi("warmup"), "1.5")),
  ),
  "(d_model · warmup)^−0.5": minusPower(parens(D_MODEL, DOT, mi("warmup")), "0.5"),
  "q = 1 − ε + ε/V": row(mi("q"), IS, mn("1"), MINUS, mi("ε"), PLUS, frac(mi("ε"), mi("V"))),
  "((5 + length) / 6)^α": penalty(mi("length")),
  "((5 + 길이) / 6)^α": penalty(element("mtext")("길이")),
  "Concat(head_1, …, head_h) W^O": row(
    call("Concat", sub(mi("head"), mn("1")), mo(","), mi("…"), mo(","), sub(mi("head"), mi("h"))), sup(mi("W"), mi("O")),
  ),
  log_k: sub(mi("log"), mi("k")),
  d_model: D_MODEL,
  "√d_k": root(D_K),
  "d_k": D_K,
};

/** The longest first: a formula may hold another. */
const KNOWN = Object.keys(FORMULAS).sort((a, b) => b.length - a.length);
const ANY = new RegExp(`(${KNOWN.map((one) => one.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})`);

export interface Part {
  text: string;
  /** What the text is as MathML, where it is a formula. */
  math: Node | null;
}

/** A text cut into what is prose and what is a formula. */
export function parts(text: string): Part[] {
  return text
    .split(ANY)
    .filter(Boolean)
    .map((one) => ({ text: one, math: FORMULAS[one] ?? null }));
}

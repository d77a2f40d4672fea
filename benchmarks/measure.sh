#!/usr/bin/env bash
# Everything that benchmarks/README.md tables, on one commit, in order of worth. On a quiet machine it
# takes some hours; it may be stopped and called again: rows of the same commit and machine are kept.
#
#   DATA=data benchmarks/measure.sh              all steps but `news`, whose rows are not tabled
#   DATA=data benchmarks/measure.sh train256 …   these steps
#
# DATA: a folder called `data` with multi30k/ (`dragoman data get multi30k`) and, for `news`,
# newstest/newstest2014-deen.en.gz. The steps `minutes` and `serve` begin anew when they are stopped.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD; py=$tree/.venv/bin/python; dragoman=$tree/.venv/bin/dragoman
data=$(cd "${DATA:?the folder of the data}" && pwd); around=$(dirname "$data"); m=$data/multi30k
text="--source $m/train.en.gz --target $m/train.de.gz"
test="--source $m/test_2016_flickr.en.gz --reference $m/test_2016_flickr.de.gz"
steps=${*:-prepare ways train256 train512 ids runs trained minutes serve cost tables}

prepare() { # one commit, fresh kernels
  git diff --quiet HEAD -- src benchmarks/*.py benchmarks/*/*.py || { echo "commit first"; exit 1; }
  "$py" -m dragoman.native.compile >/dev/null
}
ways() { "$py" benchmarks/ways.py; }
train256() { "$py" benchmarks/train.py --work train-d256 $text --resume; }
train512() {
  "$py" benchmarks/train.py --work train-d512 --resume --only dragoman:ours:bf16 \
    torch.nn.Transformer:shipped:fp32 hugging-face-marian:shipped:fp32 \
    torch.nn.Transformer:tuned:bf16 hugging-face-marian:tuned:bf16
}
ids() { "$py" benchmarks/translate.py --work d256 d512 --resume; }
news() {
  "$py" benchmarks/translate.py --work newstest2014 --latency 50 --resume \
    --news "$data/newstest/newstest2014-deen.en.gz"
}
runs() { # two trained runs; one that is there already is kept
  [ -e runs/d256/model.safetensors ] || (cd "$around" && "$dragoman" train multi30k-en-de \
    --to "$tree/runs/d256" --seed 1 --set model.model_dim=256 --set model.ffn_dim=1024 \
    --set model.encoder_layers=3 --set model.decoder_layers=3 --set model.attention.num_heads=8 \
    --set model.dropout=0.2 --set training.schedule.peak=2e-3 --set training.schedule.warmup=1000 \
    --set training.updates=1500)
  [ -e runs/d256/shortlist.safetensors ] || (cd "$around" && "$dragoman" shortlist "$tree/runs/d256")
  [ -e runs/multi30k-en-de/model.safetensors ] || (cd "$around" && "$dragoman" train multi30k-en-de \
    --to "$tree/runs/multi30k-en-de" --seed 1 --set training.keep_snapshots=24 --set training.updates=3000)
}
trained() { "$py" benchmarks/translate.py --work --run runs/d256 $test --name multi30k-d256 --resume; }
minutes() {
  (cd "$around" && "$py" "$tree/benchmarks/minutes.py" --run "$tree/runs/multi30k-en-de" --minutes 10)
}
serve() {
  (cd "$around" && "$py" "$tree/benchmarks/serve.py" --run "$tree/runs/multi30k-en-de" --minutes 5)
}
cost() { "$py" benchmarks/cost.py --lines 1000000 --resume; }
tables() { "$py" benchmarks/tables.py; }
for step in $steps; do
  echo "== $step $(date +%H:%M:%S)"
  $step
done

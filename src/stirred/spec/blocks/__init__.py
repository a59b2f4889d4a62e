"""The five building blocks: domain, multiverse, input premetric, output premetric, budget."""

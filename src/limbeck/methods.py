"""What there is. Adding a method is a row here, its module, its tests, its page, the changelog."""

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from limbeck.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the table; `config` is where its configuration class is, loaded when used."""

    command: Literal["distill", "generate"]
    config: str
    private: bool
    summary: str
    guarantee: str
    paper: str
    docs: str

    def load(self) -> Any:
        """The configuration class."""
        module, name = self.config.split(":")
        return getattr(importlib.import_module(module), name)


OF_MOMENTS = (
    "(ε, δ)-DP, one Gaussian draw each of means, counts and, of tables, histograms; of gradients a "
    "hundred, with --label-with readout"
)

METHODS = {
    "readout": Method(
        command="distill",
        config="limbeck.distill.readout:Readout",
        private=True,
        summary="a private readout of fixed features, then points that have it",
        guarantee="(ε, δ)-DP, composition of Gaussian draws over all records",
        paper="ours",
        docs="docs/readout.md",
    ),
    "dp-kip": Method(
        command="distill",
        config="limbeck.distill.dp_kip:DPKIP",
        private=True,
        summary="kernel inducing points by noisy gradients of clipped records",
        guarantee="(ε, δ)-DP, Poisson-sampled Gaussian draws",
        paper="Vinaroz & Park, Differentially Private Kernel Inducing Points, TMLR 2024",
        docs="docs/dp_kip.md",
    ),
    "kip": Method(
        command="distill",
        config="limbeck.distill.kip:KIP",
        private=False,
        summary="kernel inducing points, the baseline without privacy",
        guarantee="none",
        paper="Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021",
        docs="docs/dp_kip.md",
    ),
    "dp-ntk": Method(
        command="generate",
        config="limbeck.generate.moment_matching:DPNTK",
        private=True,
        summary="a generator that matches class-wise means of an untrained network's gradients",
        guarantee=OF_MOMENTS,
        paper="Yang et al., Differentially Private Neural Tangent Kernels, 2023",
        docs="docs/moment_matching.md",
    ),
    "dp-merf": Method(
        command="generate",
        config="limbeck.generate.moment_matching:DPMERF",
        private=True,
        summary="the same with random Fourier features",
        guarantee=OF_MOMENTS,
        paper="Harder, Adamczewski & Park, DP-MERF, AISTATS 2021",
        docs="docs/moment_matching.md",
    ),
    "dp-hp": Method(
        command="generate",
        config="limbeck.generate.moment_matching:DPHP",
        private=True,
        summary="the same with Hermite polynomial features",
        guarantee=OF_MOMENTS,
        paper="Vinaroz et al., Hermite Polynomial Features for Private Data Generation, ICML 2022",
        docs="docs/moment_matching.md",
    ),
    "g-pate": Method(
        command="generate",
        config="limbeck.generate.g_pate:GPATE",
        private=True,
        summary="a generator taught by the noisy votes of many discriminators",
        guarantee="(ε, δ)-DP, Gaussian draws of votes, one Laplace draw of the counts",
        paper="Long et al., G-PATE: Scalable Differentially Private Data Generator, NeurIPS 2021",
        docs="docs/g_pate.md",
    ),
    "dp-gan": Method(
        command="generate",
        config="limbeck.generate.gan:DPGAN",
        private=True,
        summary="a generator against a discriminator that learns by noisy gradients",
        guarantee="(ε, δ)-DP, Poisson-sampled Gaussian draws, one Laplace draw of the counts",
        paper="Xie et al., Differentially Private Generative Adversarial Network, 2018",
        docs="docs/g_pate.md",
    ),
    "gan": Method(
        command="generate",
        config="limbeck.generate.gan:GAN",
        private=False,
        summary="a generator against a discriminator, the baseline without privacy",
        guarantee="none",
        paper="Goodfellow et al., Generative Adversarial Nets, NIPS 2014",
        docs="docs/g_pate.md",
    ),
}


def find(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UserError(f"there is no method '{name}'; choose from: {', '.join(METHODS)}")
    return METHODS[name]

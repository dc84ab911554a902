"""Asked: what one step is asked to do, seen from the GPUs that share the attention of a request."""

from dataclasses import dataclass, replace

from planner.cost.whole.assumed import assumed_body
from planner.model import Body, ModelSpec
from planner.problem import Problem


@dataclass(frozen=True)
class Asked:
    """One step of an engine. Draft layers take no part: speculation is not modelled.

    An attention group is the GPUs that share a request's attention; `groups` of them share the experts.
    """

    model: ModelSpec  # without draft layers, with a body
    attention_tp: int
    groups: int
    decodes: bool
    tokens: float  # of one group in one step: requests that decode, or prompt tokens
    prompt_tokens: float  # of one request
    output_tokens: float
    disaggregated: bool = False  # other GPUs work through the prompts

    @property
    def body(self) -> Body:
        assert self.model.body is not None, "whoever asks has given it one"
        return self.model.body

    @property
    def context(self) -> float:
        """Tokens before a token, on average over a request's life."""
        return self.prompt_tokens + self.output_tokens / 2 if self.decodes else self.prompt_tokens / 2

    @property
    def requests(self) -> float:
        """Of one group, whose next token a step samples."""
        return self.tokens if self.decodes else self.tokens / self.prompt_tokens

    @property
    def prompts_beside(self) -> float:
        """Prompt tokens that a group works through in a decode step, where the same GPUs serve both.

        For every request that ends another begins: one in as many steps as a request has output tokens.
        """
        if self.disaggregated or not self.decodes:
            return 0.0
        return self.tokens * self.prompt_tokens / self.output_tokens


def asked_of(problem: Problem, *, disaggregated: bool = False) -> Asked:
    """The step of a problem's workload."""
    workload, model = problem.workload, problem.model
    return Asked(
        model=replace(model, draft_layer_ids=(), body=model.body or assumed_body(model)),
        attention_tp=workload.attention_tp,
        groups=problem.gpus // workload.attention_tp,
        decodes=workload.phase == "decode",
        tokens=float(workload.tokens_per_rank * workload.attention_tp),
        prompt_tokens=float(workload.prompt_tokens),
        output_tokens=float(workload.output_tokens),
        disaggregated=disaggregated,
    )

"""What a gain must be to be one: the same for a plan, a layout, an alternative and a comparison."""

WORTH_IT = 0.01  # a share of the step or of the tokens/s; a smaller gain is called none

import { integer, oneOf } from "../../../src/config/kinds.ts";
import { option } from "../../../src/config/option.ts";

export const TOY_OPTIONS = {
  toyColour: option({
    env: "ENGINE_TOY_COLOUR",
    toml: "toy.colour",
    kind: oneOf(["red", "blue"]),
    default: "red",
    side: "S",
    doc: "Colour in which toys are painted.",
  }),
  toyTidyMs: option({
    env: "ENGINE_TOY_TIDY_MS",
    toml: "toy.tidy_ms",
    kind: integer({ min: 10, max: 60_000 }),
    default: 60_000,
    side: "S",
    doc: "Milliseconds between two searches for broken toys, which go.",
  }),
} as const;

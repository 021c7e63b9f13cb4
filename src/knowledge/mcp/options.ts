import * as kinds from "../../config/kinds.ts";
import { option } from "../../config/option.ts";

export const MCP_OPTIONS = {
  distillVerbose: option({
    env: "ENGINE_DISTILL_VERBOSE",
    toml: "client.distill_verbose",
    kind: kinds.bool,
    default: false,
    side: "C",
    doc: "Has `engine distill` say on standard error what it saved, and of which turn of the transcript.",
  }),
} as const;

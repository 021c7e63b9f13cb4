import { oneOf } from "../config/kinds.ts";
import { optional } from "../config/option.ts";

export const WEB_OPTIONS = {
  web: optional({
    env: "ENGINE_WEB",
    toml: "server.web",
    kind: oneOf(["on", "off"]),
    whenUnset: "on where the roles are `all_in_one` or `edge`",
    side: "S",
    doc: "Whether this server has the pages at `/ui/`, and `/` leads there: see [the web UI](web.md).",
  }),
};

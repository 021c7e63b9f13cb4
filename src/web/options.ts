import { oneOf, path } from "../config/kinds.ts";
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
  iconGallery: optional({
    env: "ENGINE_ICON_GALLERY",
    toml: "server.icon_gallery",
    kind: path,
    whenUnset: "the icons of the program",
    side: "S",
    doc:
      "A JSON file with the maps `kinds` and `vendors`, from names to path data of SVGs, which `GET /v1/icons` gives " +
      "besides its own: see [the web UI](web.md#icons).",
  }),
};

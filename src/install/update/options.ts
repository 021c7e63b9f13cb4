import * as kinds from "../../config/kinds.ts";
import { derived, optional } from "../../config/option.ts";

declare const ENGINE_RELEASE_URL: string | undefined;

const BUILT_IN_URL = typeof ENGINE_RELEASE_URL === "string" ? ENGINE_RELEASE_URL : undefined;

/** Where releases are: a server, or a folder of this machine. */
const releaseUrl: kinds.Kind<string> = {
  accepts: `${kinds.baseUrl.accepts}, or file:///FOLDER`,
  label: "URL",
  parse(text, context) {
    if (!/^file:/i.test(text)) return kinds.baseUrl.parse(text, context);
    const url = /^file:\/\/\//i.test(text) ? URL.parse(text) : null;
    if (url === null || url.search !== "" || url.hash !== "" || url.host !== "") return undefined;
    return url.href.replace(/\/+$/, "");
  },
  format: String,
};

const anything: kinds.Kind<true> = {
  accepts: "anything",
  label: "anything",
  parse: () => true,
  parseNative: () => true,
  format: String,
};

/** The options of `engine update`. */
export const UPDATE_OPTIONS = {
  updateUrl: derived<string | undefined>({
    env: "ENGINE_UPDATE_URL",
    toml: "update.url",
    kind: releaseUrl,
    defaultOf: () => BUILT_IN_URL,
    defaultShown: "the address that the release was built with",
    side: "C",
    doc:
      "Where `engine update` finds releases: a mirror, or a folder in a network without access to others " +
      "(`file:///srv/engine`). Whatever is found there must be signed by a key of this program.",
  }),
  noUpdateCheck: optional({
    env: "ENGINE_NO_UPDATE_CHECK",
    toml: "update.no_check",
    kind: anything,
    whenUnset: "on a terminal, and not in CI, commands look for a newer release once a day",
    side: "C",
    doc: "With any value, commands neither look for newer releases nor tell of them; `engine update` does.",
  }),
} as const;

import { z } from "zod";
import { ENV_NAME, text } from "../../contract/text-fields.ts";
import type { McpServer } from "../../contract/spec.ts";

/** The field `mcp_servers` of a create request: servers of the Model Context Protocol. */

const MAX_SERVERS = 32;
const MAX_ARGS = 64;
const MAX_PAIRS = 64;
const VALUE_CHARS = 8_192;
const URL_CHARS = 2_048;
/** Of all servers together, as JSON. */
const MAX_BYTES = 65_536;

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** RFC 9110: a token. */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\u{10ffff}]*$/u;

const name = z.string().regex(NAME, "accepted are up to 64 letters, digits, `_` and `-`, a letter or digit first");

function pairs(names: RegExp, value: z.ZodType<string>) {
  return z
    .record(z.string(), value)
    .default({})
    .refine((all) => Object.keys(all).length <= MAX_PAIRS, `accepted are at most ${MAX_PAIRS}`)
    .refine((all) => Object.keys(all).every((one) => names.test(one)), "a name is none");
}

const stdio = z.strictObject({
  name,
  type: z.literal("stdio").default("stdio"),
  command: text(URL_CHARS).min(1).describe("A program inside, that the agent starts for each session."),
  args: z.array(text(VALUE_CHARS)).max(MAX_ARGS).default([]),
  env: pairs(ENV_NAME, text(VALUE_CHARS)).describe("Of that program. `${NAME}` in a value is that one of `env_vars`."),
});

const remote = z.strictObject({
  name,
  type: z.enum(["http", "sse"]),
  url: z
    .string()
    .max(URL_CHARS)
    .refine(isServerUrl, "accepted are http:// and https:// URLs, without user and fragment")
    .describe("The agent's way there is the sandbox's network."),
  headers: pairs(HEADER_NAME, z.string().max(VALUE_CHARS).regex(HEADER_VALUE, "accepted is text of one line")).describe(
    "Of each request. `${NAME}` in a value is that one of `env_vars`.",
  ),
});

/** The field `mcp_servers` of `agent_config`. */
export const mcpServersField = z
  .array(z.union([stdio, remote], { error: "accepted are {name, command, args, env}, or {name, type, url, headers}" }))
  .max(MAX_SERVERS)
  .default([])
  .refine((all) => new Set(all.map((one) => one.name)).size === all.length, "two servers have the same name")
  .refine((all) => Buffer.byteLength(JSON.stringify(all)) <= MAX_BYTES, `accepted are ${MAX_BYTES} bytes in all`)
  .describe("Servers of the Model Context Protocol that the agent is told of in each session.");

function isServerUrl(value: string): boolean {
  const url = URL.parse(value);
  if (url === null || !/^https?:\/\/[^\s\\#]+$/i.test(value) || !value.isWellFormed() || /\p{Cc}/u.test(value))
    return false;
  return /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

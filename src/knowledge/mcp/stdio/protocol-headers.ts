/**
 * Headers that the protocol wants beside a message over HTTP, since 2026-07-28: what the message says itself, once more. Over
 * stdio there are none.
 */
export function headersOf(message: unknown): Readonly<Record<string, string>> {
  const { method, params } = objectIn(message);
  const { _meta: meta, ...own } = objectIn(params);
  const version = objectIn(meta)[VERSION_KEY];
  if (typeof version !== "string" || typeof method !== "string") return {};
  const name = own[NAME_FIELDS.get(method) ?? "name"];
  return {
    "mcp-protocol-version": encoded(version),
    "mcp-method": encoded(method),
    ...(NAME_FIELDS.has(method) && typeof name === "string" && { "mcp-name": encoded(name) }),
  };
}

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** Where a request of the method has its name. */
const NAME_FIELDS: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

/** What a header cannot hold is in base64, as the protocol says. */
function encoded(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?");
  return isPlain ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

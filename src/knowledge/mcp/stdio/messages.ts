/** Messages of JSON-RPC, as far as a relay looks at them. */

export type Message = Readonly<Record<string, unknown>>;

export function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The key of the request that a message answers, or that it is: ids are texts and numbers. */
export function keyOf({ id }: Message): string | undefined {
  return typeof id === "string" || typeof id === "number" ? JSON.stringify(id) : undefined;
}

/** Whether the message answers the request, or refuses it without having looked at its id. */
export function isAnswerTo(request: Message, message: Message): boolean {
  if ("method" in message) return false;
  return message["id"] === request["id"] || (message["id"] === null && "error" in message);
}

/** The request that a client takes back. */
export function cancelledBy({ method, params }: Message): string | undefined {
  if (method !== "notifications/cancelled" || !isMessage(params)) return undefined;
  return keyOf({ id: params["requestId"] });
}

/**
 * The request as it may be sent more than once: rows get a key by which a second copy is known. What the other tools write
 * is known by itself.
 */
export function repeatable(request: Message, newId: () => string): Message {
  const { method, params } = request;
  if (method !== "tools/call" || !isMessage(params) || params["name"] !== "ingest_rows") return request;
  const { arguments: args } = params;
  if (!isMessage(args) || (args["idempotency_key"] ?? null) !== null) return request;
  return { ...request, params: { ...params, arguments: { ...args, idempotency_key: `stdio:${newId()}` } } };
}

export function failure(id: unknown, code: number, message: string): Message {
  return { jsonrpc: "2.0", id: id ?? null, error: { code, message } };
}

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** The official client, of one of the protocols. */
export type Era = "legacy" | "2026-07-28";

export async function mcpClient(
  url: string,
  { era, token, database }: { era: Era; token?: string | undefined; database?: string },
): Promise<Client> {
  const mode = era === "legacy" ? era : { pin: era };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const headers = {
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(database !== undefined && { "X-Database": database }),
  };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp/v1`), { requestInit: { headers } }));
  return client;
}

export type Result = { isError?: boolean; structuredContent?: Record<string, unknown>; text: string };

/** What a tool answers. */
export async function callTool(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Result> {
  const { isError, structuredContent, content } = await client.callTool({ name, arguments: args });
  const [first] = content as { type: string; text: string }[];
  return {
    ...(isError === true && { isError }),
    ...(structuredContent !== undefined && { structuredContent: structuredContent as Record<string, unknown> }),
    text: first?.text ?? "",
  };
}

/** What it answers where that is no error. */
export async function called(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { isError, structuredContent, text } = await callTool(client, name, args);
  if (isError === true || structuredContent === undefined) throw new Error(`${name}: ${text}`);
  return structuredContent;
}

/** Why it answers none. */
export async function refusedCall(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { isError, text } = await callTool(client, name, args);
  if (isError !== true) throw new Error(`${name} answered ${text}`);
  return (JSON.parse(text) as { error: { code: string; message: string } & Record<string, unknown> }).error;
}

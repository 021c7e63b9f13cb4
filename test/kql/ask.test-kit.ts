import { parseExactly } from "./translated.test-kit.ts";
import type { KqlValue } from "./cases.test-kit.ts";

/** The rows of a query in KQL over HTTP; throws where it is refused. */
export async function kqlRows(url: string, text: string): Promise<Record<string, KqlValue>[]> {
  const headers = { "Content-Type": "application/x-kql" };
  const response = await fetch(`${url}/v1/query`, { method: "POST", headers, body: text });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${body}\n${text}`);
  return body
    .split("\n")
    .filter((line) => line !== "")
    .map(parseExactly);
}

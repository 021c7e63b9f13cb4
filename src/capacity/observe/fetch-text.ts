import { request } from "undici";
import type { FetchText } from "./span.ts";

const TIMEOUT_MS = 10_000;
/** The metrics of a server are some hundred kilobytes. */
const MAX_CHARS = 64 * 1024 * 1024;

/** GET with a bearer token, where there is one. */
export function textFetcher(token: string | undefined): FetchText {
  const headers = token === undefined || token === "" ? {} : { authorization: `Bearer ${token}` };
  return async (url) => {
    const { statusCode, body } = await request(url, { headers, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    body.setEncoding("utf8");
    let text = "";
    for await (const piece of body) {
      text += String(piece);
      if (text.length > MAX_CHARS) throw new Error(`it answers more than ${MAX_CHARS} characters`);
    }
    if (statusCode !== 200) throw new Error(`it answers ${statusCode}`);
    return text;
  };
}

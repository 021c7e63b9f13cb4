import { request } from "undici";
import { cappedText } from "../../io/http/client/capped-text.ts";
import type { FetchText } from "./span.ts";

const TIMEOUT_MS = 10_000;
/** The metrics of a server are some hundred kilobytes. */
const MAX_CHARS = 64 * 1024 * 1024;

/** GET with a bearer token, where there is one. */
export function textFetcher(token: string | undefined): FetchText {
  const headers = token === undefined || token === "" ? {} : { authorization: `Bearer ${token}` };
  return async (url) => {
    const { statusCode, body } = await request(url, { headers, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    const text = await cappedText(body, MAX_CHARS);
    if (statusCode !== 200) throw new Error(`it answers ${statusCode}`);
    return text;
  };
}

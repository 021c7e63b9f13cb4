import { Agent, request } from "undici";

/** Requests as browsers send them, header by header. */
export type WebReply = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  json: Record<string, unknown>;
  code: string | undefined;
};

export type WebRequest = {
  headers?: Record<string, string>;
  body?: unknown;
  /** The address that it comes from, of this machine: one with many wrong passwords is made to wait. */
  from?: string;
};

const agents = new Map<string, Agent>();

function agentOf(localAddress: string): Agent {
  const agent = agents.get(localAddress) ?? new Agent({ localAddress });
  agents.set(localAddress, agent);
  return agent;
}

export async function ask(url: string, method: string, path: string, sent: WebRequest = {}): Promise<WebReply> {
  const { headers = {}, body, from = "127.0.0.1" } = sent;
  const reply = await request(url + path, {
    dispatcher: agentOf(from),
    method: method as "GET",
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await reply.body.text();
  const json = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
  const { code } = (json["error"] ?? {}) as { code?: string };
  return { status: reply.statusCode, headers: reply.headers, text, json, code };
}

/** What a page of the server itself sends along. */
export const OWN_PAGE = { "sec-fetch-site": "same-origin" } as const;

/** The first cookie of an answer, as it is sent back. */
export function cookieOf({ headers }: WebReply): string {
  return setCookies(headers)[0]?.split(";")[0] ?? "";
}

export function setCookies(headers: WebReply["headers"]): string[] {
  const found = headers["set-cookie"];
  return found === undefined ? [] : [found].flat();
}

/** A browser that signed in: what it asks for as its own page does. */
export class SignedIn {
  readonly url: string;
  readonly cookie: string;
  readonly #more: Record<string, string>;

  constructor(url: string, cookie: string, more: Record<string, string> = {}) {
    this.url = url;
    this.cookie = cookie;
    this.#more = more;
  }

  ask(method: string, path: string, { headers = {}, body }: WebRequest = {}): Promise<WebReply> {
    return ask(this.url, method, path, {
      headers: { ...OWN_PAGE, ...this.#more, cookie: this.cookie, ...headers },
      body,
    });
  }
}

export async function signInWith(
  url: string,
  way: "login" | "token",
  body: unknown,
  headers: Record<string, string> = {},
): Promise<SignedIn> {
  const reply = await ask(url, "POST", `/v1/auth/web/${way}`, { headers: { ...OWN_PAGE, ...headers }, body });
  if (reply.status !== 200) throw new Error(`${way}: ${reply.status} ${reply.text}`);
  return new SignedIn(url, cookieOf(reply));
}

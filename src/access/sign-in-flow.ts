import { timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { isSecret } from "../auth/secrets.ts";
import { hashToken } from "../auth/tokens.ts";
import type { SignInRequest } from "../auth/web/sign-in-client.ts";
import type { HttpRequest } from "../io/http/http.ts";
import { cookiesOf, secureIn } from "../server/web-session.ts";
import { HOME, returnTo } from "./return-to.ts";
import { jsonIn } from "../core/json-text.ts";

/**
 * A sign-in while the browser is at an issuer. All that is known of it travels in a cookie of that browser, one for each:
 * so an answer counts in no other browser, the server keeps nothing for those who never come back, and any node takes the
 * answer. Scripts do not see it (`HttpOnly`). What it holds is worth nothing without the issuer's code, which comes once;
 * it is `Lax`, since it must come along when the issuer sends the browser back.
 *
 * Whoever can set cookies for this host could set one of these, as a program on another port of it can, and so could have
 * a browser sign in as somebody else. They could as well set the cookie of a session. So `return_to` is checked again
 * when it comes back.
 */
export type SignInFlow = SignInRequest & {
  returnTo: string;
  /** The hash of the cookie that the browser had when it left, whose session ends with the new one. */
  former: string | undefined;
};

const TTL_SECS = 600;
const NAME_CHARS = 16;

export const CALLBACK = "/v1/auth/web/callback";

const secret = z.string().refine(isSecret);
const stored = z.strictObject({
  provider: z.string(),
  redirectUri: z.string(),
  state: secret,
  nonce: secret,
  verifier: secret,
  returnTo: z.string(),
  former: z.string().optional(),
});

export function setFlowCookie(request: HttpRequest, flow: SignInFlow): string {
  const value = Buffer.from(JSON.stringify(flow)).toString("base64url");
  return cookieText(request, flow.state, value, TTL_SECS);
}

export function clearFlowCookie(request: HttpRequest, state: string): string {
  return cookieText(request, state, "", 0);
}

/** The sign-in of this browser with that state; undefined for one that it has not begun. */
export function flowOf(request: HttpRequest, state: string): SignInFlow | undefined {
  const [value, another] = cookiesOf(request, cookieName(request, state));
  if (value === undefined || another !== undefined) return undefined;
  const found = stored.safeParse(jsonIn(Buffer.from(value, "base64url").toString("utf8")));
  if (!found.success || !isEqual(found.data.state, state)) return undefined;
  const { former, ...flow } = found.data;
  return { ...flow, returnTo: returnTo(flow.returnTo) ?? HOME, former };
}

/** `__Host-` keeps other hosts of the domain from setting it; browsers take the name over TLS, for all paths, only. */
function cookieName(request: HttpRequest, state: string): string {
  return `${secureIn(request) === "" ? "" : "__Host-"}engine_sign_in_${hashToken(state).slice(0, NAME_CHARS)}`;
}

function cookieText(request: HttpRequest, state: string, value: string, ageSecs: number): string {
  const secure = secureIn(request);
  const path = secure === "" ? CALLBACK : "/";
  return `${cookieName(request, state)}=${value}; Path=${path}; ${secure}HttpOnly; SameSite=Lax; Max-Age=${ageSecs}`;
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(hashToken(a)), Buffer.from(hashToken(b))];
  return timingSafeEqual(left, right);
}

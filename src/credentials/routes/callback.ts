import { z } from "zod";
import { hashToken } from "../../auth/tokens.ts";
import { EngineError } from "../../core/errors.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { FLOW_TTL_MS } from "../oauth/flow-records.ts";
import type { FlowProblem, FlowResult, OAuthFlows, ProviderAnswer } from "../oauth/flows.ts";
import type { OAuthDeps } from "./deps.ts";
import type { Call } from "../../server/route.ts";
import { checkIsGet } from "../../server/check-is-get.ts";
import { confirmationPage, resultPage, type ResultPage } from "./pages.ts";

/** What the provider sends a browser back with, and how it is answered: for each set of routes that starts flows. */

const MAX_CODE_CHARS = 4_096;
const FORM_BYTES = 16 * 1024;
const NONCE_BYTES = 16;

export const callbackPages = [
  { status: 200, description: "A page with the result, or with a question before it.", type: "text/html" },
  { status: 400, description: "A page that says why this is no answer to a flow.", type: "text/html" },
] as const;

export const answerQuery = z.object({
  code: z.string().optional(),
  state: z.string().optional(),
  iss: z.string().optional().describe("Who answers (RFC 9207)."),
  error: z.string().optional(),
});

/** What the page with the question sends. */
export const callbackForm = {
  types: ["application/x-www-form-urlencoded"],
  description: "`decision` (`connect` or `cancel`) with `code`, `state` and `iss` as the provider sent them.",
  limitBytes: FORM_BYTES,
} as const;

export const confirmErrors = [
  ...(["forbidden", "not_configured", "insufficient_storage", "unavailable"] as const),
  ...(["body_too_large", "unsupported_media_type", "request_timeout"] as const),
] as const;

type Sent = { state: string; answer: ProviderAnswer };

/** What came of an answer: a flow's result, or that it is an answer to none. */
export type CallbackResult = FlowResult | { status: "malformed" };

export class Callback {
  readonly #deps: OAuthDeps;
  readonly #flows: OAuthFlows;
  readonly #basePath: string;

  /** The path of the routes is where browsers without TLS send the mark back to. */
  constructor(deps: OAuthDeps, basePath: string) {
    this.#deps = deps;
    this.#flows = deps.oauth;
    this.#basePath = basePath;
  }

  /** Answers a browser with a page: in the one that started the flow the result, in another one a question. */
  async answer(provider: string, query: z.output<typeof answerQuery>, call: Call): Promise<HttpResponse> {
    checkIsGet(call.request, "GET, POST");
    const sent = sentBy(query);
    if (sent === undefined) return this.#problem("malformed");
    const flow = await this.#flows.pending(provider, sent.state);
    if (typeof flow === "string") return this.#problem(flow, sent.state);
    if ("code" in sent.answer && !flow.isOf(this.#mark(call.request, sent.state))) {
      const { code, issuer } = sent.answer;
      return confirmationPage(flow, { code, state: sent.state, iss: issuer }, this.#nonce());
    }
    return await this.#finish(provider, sent, call);
  }

  /** Takes an answer that no browser brings. */
  async take(provider: string, query: z.output<typeof answerQuery>, call: Call): Promise<CallbackResult> {
    checkIsGet(call.request, "GET, POST");
    const sent = sentBy(query);
    return sent === undefined ? { status: "malformed" } : await this.#result(provider, sent, call);
  }

  /** Takes what the page with the question sends. */
  async confirm(provider: string, call: Call): Promise<HttpResponse> {
    if (!isOfThisOrigin(call.request, this.#flows.redirectOrigin)) {
      throw new EngineError("forbidden", "this form is sent by the page of this server only");
    }
    const bytes = await readDecodedBody(call.request, FORM_BYTES);
    const form = new URLSearchParams(Buffer.from(bytes).toString("utf8"));
    const sent = sentBy(answerQuery.parse(Object.fromEntries(form)));
    const decision = form.get("decision");
    if (sent === undefined || (decision !== "connect" && decision !== "cancel")) return this.#problem("malformed");
    const decided = decision === "connect" ? sent : { ...sent, answer: { error: "cancelled" } };
    return await this.#finish(provider, decided, call);
  }

  /**
   * The mark of the browser, one for each flow. `__Host-` keeps other hosts of the domain from setting it: one could
   * mark the browser of somebody else as the one that started. `Lax` lets it come with the provider's redirect.
   */
  cookie(state: string, value: string | undefined): string {
    const origin = this.#flows.redirectOrigin;
    const place = isSecure(origin) ? "Path=/; Secure" : `Path=${this.#basePath}`;
    const ageSecs = value === undefined ? 0 : FLOW_TTL_MS / 1_000;
    return `${cookieName(origin, state)}=${value ?? ""}; ${place}; HttpOnly; SameSite=Lax; Max-Age=${ageSecs}`;
  }

  async #result(provider: string, { state, answer }: Sent, call: Call): Promise<FlowResult> {
    const from = { address: call.clientAddress, requestId: call.requestId };
    return await this.#flows.finish(provider, state, answer, from);
  }

  async #finish(provider: string, sent: Sent, call: Call): Promise<HttpResponse> {
    const result = await this.#result(provider, sent, call);
    if (result.status !== "done" && result.status !== "failed") return this.#problem(result.status, sent.state);
    const response = resultPage(pageOf(result, sent.state), this.#deps.oauthReturnBase, this.#nonce());
    response.headers["Set-Cookie"] = this.cookie(sent.state, undefined);
    return response;
  }

  #problem(problem: FlowProblem | "malformed", state?: string): HttpResponse {
    const isKnown = problem === "expired" && state !== undefined;
    const message = isKnown
      ? ({ type: "engine.oauth", status: "expired", credential_id: null, state } as const)
      : undefined;
    const page = { status: 400, title: "Not connected", text: PROBLEMS[problem], message } as const;
    return resultPage(page, this.#deps.oauthReturnBase, this.#nonce());
  }

  #nonce(): string {
    return Buffer.from(this.#deps.random.fill(new Uint8Array(NONCE_BYTES))).toString("base64");
  }

  #mark(request: HttpRequest, state: string): string | undefined {
    const prefix = `${cookieName(this.#flows.redirectOrigin, state)}=`;
    const cookies = (request.header("cookie") ?? "").split(";").map((text) => text.trim());
    return cookies.find((text) => text.startsWith(prefix))?.slice(prefix.length);
  }
}

/** Undefined for what is no answer of a provider. Values are never repeated in an error: a code is a secret. */
function sentBy({ code, state, iss, error }: z.output<typeof answerQuery>): Sent | undefined {
  if (state === undefined) return undefined;
  if (error !== undefined) return { state, answer: { error } };
  if (code === undefined || code === "" || code.length > MAX_CODE_CHARS) return undefined;
  return { state, answer: { code, issuer: iss } };
}

function pageOf(result: Extract<FlowResult, { status: "done" | "failed" }>, state: string): ResultPage {
  const type = "engine.oauth";
  if (result.status === "done") {
    const message = { type, status: "done", credential_id: result.credentialId, state } as const;
    return { status: 200, title: "Connected", text: "The account is connected. You can close this window.", message };
  }
  const message = { type, status: "failed", credential_id: null, state } as const;
  const text = `The account was not connected (${result.detail}). Start again where you came from.`;
  return { status: 200, title: "Not connected", text, message };
}

/** Why an answer is none to a flow, for people. */
export const PROBLEMS: Readonly<Record<FlowProblem | "malformed", string>> = {
  malformed: "This is no answer of a provider.",
  unknown: "Nothing was started that this would be the answer to.",
  used: "This answer came before; it is taken only once.",
  expired: "This took too long. Start again where you came from.",
};

const COOKIE_ID_CHARS = 16;

function cookieName(origin: string, state: string): string {
  return `${isSecure(origin) ? "__Host-" : ""}engine_oauth_${hashToken(state).slice(0, COOKIE_ID_CHARS)}`;
}

function isSecure(origin: string): boolean {
  return origin.startsWith("https:");
}

/** By what browsers say and pages cannot change; a request that says neither is refused. */
function isOfThisOrigin(request: HttpRequest, own: string): boolean {
  const [site, origin] = [request.header("sec-fetch-site"), request.header("origin")];
  return (site !== undefined || origin !== undefined) && !isOfAnotherPage(request, own);
}

/** Whether the page of another origin made a browser send this. */
export function isOfAnotherPage(request: HttpRequest, own: string): boolean {
  const [site, origin] = [request.header("sec-fetch-site"), request.header("origin")];
  return (site !== undefined && site !== "same-origin") || (origin !== undefined && origin !== own);
}

import type { FinishReason } from "ai";
import { cutWithin } from "../../../core/cut-text.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { EngineProblem } from "./engine.ts";

const MESSAGE_CHARS = 500;
const MAX_CAUSES = 8;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * What an error between us and a provider means: one that the library threw, or that came as a part of a stream. The
 * message has the provider's status and words, and the secret nowhere.
 */
export function problemOf(error: unknown, secret: string | undefined): EngineProblem {
  const causes = causesOf(error);
  const refusal = causes.map((cause) => Refusal.of(cause)).find((found) => found !== undefined);
  const found = refusal === undefined ? ofTransport(causes) : ofRefusal(refusal);
  return { ...found, message: cutWithin(masked(withoutControls(found.message), secret), MESSAGE_CHARS) };
}

/**
 * What the reason means for which a model stopped, where that is a failure. A stream that ends before it is whole comes
 * without an error: the library says `interrupted` then.
 */
export function problemOfFinish(reason: FinishReason): EngineProblem | undefined {
  switch (reason) {
    case "interrupted":
      return { code: "engine_failed", message: "the provider ended its answer in the middle", retryable: true };
    case "error":
      return { code: "engine_failed", message: "the provider ended its answer with an error", retryable: true };
    case "content-filter":
      return {
        code: "engine_failed",
        message: "the provider withheld the rest of the answer",
        retryable: false,
        isOfContent: true,
      };
    case "stop":
    case "length":
    case "tool-calls":
    case "other":
      return undefined;
  }
}

/** As the library's errors have it: of an answer with another status than 200, and of errors in a stream. */
class Refusal {
  readonly message: string;
  readonly statusCode: number | undefined;
  readonly isRetryable: boolean | undefined;
  readonly headers: unknown;
  readonly body: string | undefined;
  /** The parsed body; undefined where it is not of the provider's form. */
  readonly data: unknown;
  /** The provider's own names for the error. */
  readonly names: readonly string[];

  constructor(error: object) {
    const inner = objectIn(error, "error");
    this.data = fieldOf(error, "data");
    const said = [error, this.data, inner, objectIn(this.data, "error")];
    this.names = said
      .flatMap((each) => [textIn(each, "type"), textIn(each, "code")])
      .filter((name) => name !== undefined);
    this.message = textIn(error, "message") ?? textIn(inner, "message") ?? "";
    this.statusCode = statusOf(error);
    const isRetryable = fieldOf(error, "isRetryable");
    this.isRetryable = typeof isRetryable === "boolean" ? isRetryable : undefined;
    this.headers = fieldOf(error, "responseHeaders");
    this.body = textIn(error, "responseBody")?.trim();
  }

  /** Undefined for what no provider said. */
  static of(error: unknown): Refusal | undefined {
    if (typeof error !== "object" || error === null) return undefined;
    const isOfStream = fieldOf(error, "name") === "AI_StreamProviderError" || !(error instanceof Error);
    // An answer that began well and was cut off has the status 200.
    return isOfStream || (statusOf(error) ?? 0) >= 300 ? new Refusal(error) : undefined;
  }

  /** Its sentence; the body as it came where that has no sentence in the provider's form. */
  get words(): string {
    if (this.data !== undefined || this.body === undefined || this.body === "") return this.message;
    return this.message === "" ? this.body : `${this.message}: ${this.body}`;
  }

  /** `Retry-After` in seconds. Providers that send a date send this too, or are asked again as if they had sent none. */
  get retryAfterMs(): number | undefined {
    const text = textIn(this.headers, "retry-after");
    if (text === undefined || !/^\d+(?:\.\d+)?$/.test(text)) return undefined;
    return Math.min(Math.ceil(Number(text) * 1_000), MAX_RETRY_AFTER_MS);
  }
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && key in value ? Reflect.get(value, key) : undefined;
}

function textIn(value: unknown, key: string): string | undefined {
  const found = fieldOf(value, key);
  return typeof found === "string" ? found : undefined;
}

function objectIn(value: unknown, key: string): object | undefined {
  const found = fieldOf(value, key);
  return typeof found === "object" && found !== null ? found : undefined;
}

function statusOf(error: object): number | undefined {
  const status = fieldOf(error, "statusCode");
  return typeof status === "number" ? status : undefined;
}

const BUSY = new Set([429, 529]);
const LATE = new Set([408, 504]);
const BUSY_NAMES = new Set(["rate_limit_error", "overloaded_error", "rate_limit_exceeded", "insufficient_quota"]);
const TOO_LARGE_NAMES = new Set(["context_length_exceeded", "request_too_large"]);
const TOO_LARGE_WORDS =
  /context[ _-]?(?:length|window|size)|maximum context|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens/i;

function ofRefusal(refusal: Refusal): EngineProblem {
  const { statusCode, names, words, retryAfterMs } = refusal;
  const status = statusCode === undefined ? "the provider failed" : `the provider answered ${statusCode}`;
  const message = words === "" ? status : `${status}: ${words}`;
  const has = (set: ReadonlySet<string>): boolean => names.some((name) => set.has(name));
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  if ((statusCode !== undefined && BUSY.has(statusCode)) || has(BUSY_NAMES)) {
    // No money is left; that does not pass in a moment.
    return { code: "rate_limited", message, retryable: !names.includes("insufficient_quota"), ...wait };
  }
  if ((statusCode !== undefined && LATE.has(statusCode)) || names.includes("timeout_error")) {
    return { code: "engine_timeout", message, retryable: true, ...wait };
  }
  const mayBeTooLarge = statusCode === undefined || statusCode === 400 || statusCode === 422 || statusCode === 500;
  if (statusCode === 413 || has(TOO_LARGE_NAMES) || (mayBeTooLarge && TOO_LARGE_WORDS.test(words))) {
    return { code: "context_too_large", message, retryable: false };
  }
  if (has(WITHHELD_NAMES) || (mayBeTooLarge && WITHHELD_WORDS.test(words))) {
    return { code: "engine_failed", message, retryable: false, isOfContent: true };
  }
  const isServers = (statusCode ?? 0) >= 500 || names.includes("api_error") || names.includes("server_error");
  return { code: "engine_failed", message, retryable: refusal.isRetryable ?? isServers, ...wait };
}

const TIMEOUT_CODES = new Set([
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);
/** What providers say of a question, or of an answer to it, that their filters do not let pass. */
const WITHHELD_NAMES = new Set(["content_filter", "content_policy_violation", "invalid_prompt"]);
const WITHHELD_WORDS = /content[ _-]?(?:filter|policy|management policy)|filtering policy/i;

/** Nothing came, or what came is not an answer. */
function ofTransport(causes: readonly unknown[]): EngineProblem {
  const names = causes.map((cause) => (cause instanceof Error ? cause.name : ""));
  const codes = causes.map(systemCodeOf).filter((code) => code !== undefined);
  const last = causes.at(-1);
  const reason = typeof last === "string" || last instanceof Error ? messageOf(last) : "no reason was given";
  if (names.includes("TimeoutError") || codes.some((code) => TIMEOUT_CODES.has(code))) {
    return { code: "engine_timeout", message: `the provider did not answer in time: ${reason}`, retryable: true };
  }
  if (codes.length > 0) {
    const isCut = causes.some((cause) => cause instanceof TypeError && cause.message === "terminated");
    const what = isCut ? "the provider ended its answer in the middle" : "the provider cannot be reached";
    return { code: "engine_failed", message: `${what}: ${reason}`, retryable: true };
  }
  if (names.some((name) => UNREADABLE.has(name)) || reason === UNREADABLE_FIRST) {
    // The library's message quotes what came, whatever that is.
    return { code: "engine_failed", message: "the provider sent something that cannot be read", retryable: true };
  }
  if (names.some((name) => NOTHING_CAME.has(name))) {
    return { code: "engine_failed", message: "the provider answered with nothing", retryable: true };
  }
  return { code: "engine_failed", message: reason, retryable: false };
}

const UNREADABLE = new Set(["AI_JSONParseError", "AI_TypeValidationError", "AI_InvalidResponseDataError"]);
/** What the library makes of a first event that is not JSON. */
const UNREADABLE_FIRST = "Expected a normalized Anthropic stream error";

const NOTHING_CAME = new Set(["AI_NoOutputGeneratedError", "AI_NoContentGeneratedError", "AI_EmptyResponseBodyError"]);

/** The error, and what it came from. Of tries that the library repeated, the last. */
function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let next = error; next !== undefined && next !== null && causes.length < MAX_CAUSES;) {
    if (causes.includes(next)) break;
    causes.push(next);
    next = fieldOf(next, "lastError") ?? fieldOf(next, "cause");
  }
  // Where several addresses of a host were tried: the last of them says why.
  const last = causes.at(-1);
  if (last instanceof AggregateError && last.errors.length > 0) causes.push(last.errors.at(-1));
  return causes;
}

const HIDDEN = "••••";

function withoutControls(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ").trim();
}

/** Without the key, also as JSON and URLs have it; and without what a provider has starred in part. */
function masked(text: string, secret: string | undefined): string {
  let shown = text;
  if (secret !== undefined) {
    const forms = [secret, withoutControls(secret), JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
    for (const form of forms) if (form !== "") shown = shown.replaceAll(form, HIDDEN);
  }
  const words = shown.split(" ").map((word) => (word.includes("***") ? HIDDEN : word));
  return words.join(" ");
}

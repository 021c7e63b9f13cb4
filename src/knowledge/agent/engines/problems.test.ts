import { APICallError, NoOutputGeneratedError, RetryError } from "ai";
import { expect, it } from "vitest";
import { problemOf } from "./problems.ts";

const KEY = "sk-planted-0123456789abcdef";

function refusal(
  statusCode: number,
  message: string,
  rest: Partial<ConstructorParameters<typeof APICallError>[0]> = {},
) {
  const data = { error: { message } };
  return new APICallError({ message, statusCode, url: "http://p/v1", requestBodyValues: {}, data, ...rest });
}

it.each([
  [400, "Output blocked by content filtering policy", {}],
  [400, "Invalid prompt: it was flagged", { type: "invalid_request_error", code: "invalid_prompt" }],
])("status %i (%s) is about what was asked", (status, words, names) => {
  const error = refusal(status, words, { data: { error: { message: words, ...names } } });
  expect(problemOf(error, KEY)).toMatchObject({ code: "engine_failed", retryable: false, isOfContent: true });
});

it.each([
  [429, "slow down", "rate_limited", true],
  [529, "Overloaded", "rate_limited", true],
  [408, "late", "engine_timeout", true],
  [504, "late", "engine_timeout", true],
  [413, "too much", "context_too_large", false],
  [400, "prompt is too long: 210000 tokens > 200000 maximum", "context_too_large", false],
  [400, "This model's maximum context length is 128000 tokens.", "context_too_large", false],
  [400, "the request exceeds the available context size", "context_too_large", false],
  [400, "no such field", "engine_failed", false],
  [401, "invalid x-api-key", "engine_failed", false],
  [404, "no such model", "engine_failed", false],
  [500, "oh", "engine_failed", true],
] as const)("status %i (%s) is %s", (status, words, code, retryable) => {
  const problem = problemOf(refusal(status, words), KEY);
  expect(problem).toEqual({ code, retryable, message: `the provider answered ${status}: ${words}` });
});

it("says for how long the provider asks to be left alone", () => {
  const waits = (text: string) => {
    return problemOf(refusal(429, "slow down", { responseHeaders: { "retry-after": text } }), KEY).retryAfterMs;
  };
  expect(waits("3")).toBe(3_000);
  expect(waits("0.25")).toBe(250);
  expect(waits("99999999")).toBe(3_600_000);
  expect(waits("Wed, 21 Oct 2026 07:28:00 GMT")).toBeUndefined();
  expect(waits("-1")).toBeUndefined();
});

it("knows the provider's own names for an error, in a stream too", () => {
  const ofStream = (type: string, message: string) => ({ type, message, statusCode: undefined });
  expect(problemOf(ofStream("overloaded_error", "Overloaded"), KEY)).toMatchObject({ code: "rate_limited" });
  expect(problemOf(ofStream("timeout_error", "late"), KEY)).toMatchObject({ code: "engine_timeout" });
  expect(problemOf(ofStream("request_too_large", "x"), KEY)).toMatchObject({ code: "context_too_large" });
  expect(problemOf({ error: { type: "server_error", message: "oh" } }, KEY)).toEqual({
    code: "engine_failed",
    message: "the provider failed: oh",
    retryable: true,
  });
  const data = { error: { message: "no money", code: "insufficient_quota" } };
  expect(problemOf(refusal(429, "no money", { data }), KEY)).toMatchObject({ code: "rate_limited", retryable: false });
});

it("knows what happened on the way", () => {
  const failed = (cause: Error) => new TypeError("fetch failed", { cause });
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
  expect(problemOf(failed(refused), KEY)).toEqual({
    code: "engine_failed",
    message: "the provider cannot be reached: connect ECONNREFUSED 127.0.0.1:9",
    retryable: true,
  });
  const both = Object.assign(new AggregateError([refused, refused]), { code: "ECONNREFUSED" });
  expect(problemOf(failed(both), KEY).message).toContain("connect ECONNREFUSED 127.0.0.1:9");
  const late = Object.assign(new Error("Connect Timeout Error"), { code: "UND_ERR_CONNECT_TIMEOUT" });
  expect(problemOf(failed(late), KEY)).toMatchObject({ code: "engine_timeout", retryable: true });
  expect(problemOf(AbortSignal.abort(new DOMException("late", "TimeoutError")).reason, KEY)).toMatchObject({
    code: "engine_timeout",
  });
  expect(problemOf(new NoOutputGeneratedError({ message: "x" }), KEY)).toMatchObject({
    code: "engine_failed",
    message: "the provider answered with nothing",
  });
  const retried = new RetryError({ message: "x", reason: "maxRetriesExceeded", errors: [refusal(429, "slow down")] });
  expect(problemOf(retried, KEY)).toMatchObject({ code: "rate_limited" });
});

it.each([undefined, null, "words", 7, {}, Object.assign(new Error("round"), { cause: undefined })])(
  "makes something of %o",
  (error) => {
    expect(problemOf(error, KEY)).toMatchObject({ code: "engine_failed", message: expect.stringMatching(/./) });
  },
);

it("ends with causes that go round", () => {
  const [a, b]: Error[] = [new Error("a"), new Error("b")];
  Object.assign(a ?? {}, { cause: b });
  Object.assign(b ?? {}, { cause: a });
  expect(problemOf(a, KEY).message).toBe("b");
});

it("shows the key nowhere, in no form, and nothing that a terminal would obey", () => {
  const odd = 'k"ey/with%odd\\signs';
  for (const key of [KEY, odd]) {
    const forms = [key, JSON.stringify(key), encodeURIComponent(key), `Bearer ${key}.`, `${key}${key}`];
    for (const form of forms) {
      for (const problem of [
        problemOf(refusal(401, `wrong: ${form}`), key),
        problemOf(refusal(401, "", { data: undefined, responseBody: `wrong: ${form}` }), key),
        problemOf(new Error(`invalid header value ${form}`), key),
        problemOf({ error: { message: form } }, key),
      ]) {
        expect(problem.message).not.toContain(key);
        expect(problem.message).not.toContain(JSON.stringify(key).slice(1, -1));
        expect(problem.message).not.toContain(encodeURIComponent(key));
      }
    }
  }
  const starred = problemOf(refusal(401, "Incorrect API key provided: sk-pl*****cdef."), KEY);
  expect(starred.message).toBe("the provider answered 401: Incorrect API key provided: ••••");
  expect(problemOf(refusal(400, "a\u001B[31mb\u0000c\u202Ed\ne"), KEY).message).toBe(
    "the provider answered 400: a [31mb c d e",
  );
});

it("bounds what it shows", () => {
  for (const words of ["x".repeat(10_000), "🦆".repeat(10_000)]) {
    const { message } = problemOf(refusal(400, words), KEY);
    expect(message.length).toBeLessThanOrEqual(500);
    expect(message.isWellFormed()).toBe(true);
    expect(message.endsWith("…")).toBe(true);
  }
});

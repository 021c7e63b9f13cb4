import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Route } from "../../src/server/route.ts";
import { roleIncludes } from "../../src/auth/caller.ts";
import { nameOf, ROUTES } from "./routes.test-kit.ts";
import type { Sample } from "./sample.test-kit.ts";
import { SAMPLES } from "./samples.test-kit.ts";
import {
  startWorld,
  type Reply,
  type Stranger,
  type TestCaller,
  type TestRequest,
  type World,
} from "./world.test-kit.ts";

/**
 * Every route of the table, against every kind of caller. What must come is derived from the row (its role, whether it
 * is for tokens without a limit) and, for those who pass, from the sample of the route. A route without a sample fails.
 */

/** As OpenAPI spells it. */
const documentedNameOf = ({ method, path }: Route) => nameOf({ method, path: path.replace("{*", "{") });

let world: World;
beforeAll(async () => {
  world = await startWorld();
}, 120_000);
afterAll(() => world.stop());

test("the server serves the routes of the table and no others, with the roles that the table says", async () => {
  const { json } = await world.send({ method: "GET", path: "/v1/openapi.json" });
  const paths = json["paths"] as Record<string, Record<string, { "x-role": string }>>;
  const served = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, row]) => [`${method.toUpperCase()} ${path}`, row["x-role"]]),
  );
  expect(Object.fromEntries(served)).toEqual(
    Object.fromEntries(ROUTES.map((route) => [documentedNameOf(route), route.role])),
  );
});

test("every route has a sample, and every sample a route", () => {
  expect(Object.keys(SAMPLES).toSorted()).toEqual(ROUTES.map(nameOf).toSorted());
});

describe.each(ROUTES.map((route, i) => [nameOf(route), route, i] as const))("%s", (name, route, i) => {
  test("answers each caller as the table says", async () => {
    const sample = SAMPLES[name];
    if (sample === undefined) throw new Error(`${name} has no sample`);
    const requests = new Requests(sample);
    const expected: Record<string, string> = {};
    const found: Record<string, string> = {};
    // Those who are refused come first, and all with one request: that it is answered at last shows that they did nothing.
    const everyone = [...world.strangers, ...world.callers].map((by) => ({
      by,
      status: expectedOf(route, sample, by),
    }));
    const refusals = everyone.filter(({ status }) => status === 401 || status === 403);
    for (const { by, status } of [...refusals, ...everyone.filter((each) => !refusals.includes(each))]) {
      // Nobody comes from one address with so many wrong tokens that it is made to wait.
      const from = isCaller(by) ? by : { ...by, address: by.address.replace("127.0.0.", `127.0.${i + 1}.`) };
      const reply = await world.send(await requests.next(), from);
      if (reply.status < 400) requests.used();
      if (sample.endsSession === true && reply.status === 200) await world.renew(by);
      expected[by.name] = spelled(status);
      found[by.name] = spelled(reply.status, reply);
    }
    expect(found).toEqual(expected);
  });
});

class Requests {
  readonly #sample: Sample;
  #made: TestRequest | undefined;

  constructor(sample: Sample) {
    this.#sample = sample;
  }

  async next(): Promise<TestRequest> {
    this.#made ??= await this.#sample.request(world);
    return this.#made;
  }

  used(): void {
    this.#made = undefined;
  }
}

function isCaller(by: Stranger): by is TestCaller {
  return "role" in by;
}

function expectedOf({ role, unscoped }: Route, sample: Sample, by: Stranger): number {
  if (role === "none") return sample.answer(isCaller(by) ? by : undefined);
  if (role === "worker") return by === world.worker ? sample.answer(undefined) : 401;
  if (!isCaller(by)) return 401;
  if (!roleIncludes(by.role, role)) return 403;
  if (unscoped === true && by.limit !== "none") return 403;
  return sample.answer(by);
}

/** A refusal counts as one only with its code and, where a token is missing, with the challenge. */
function spelled(status: number, reply?: Reply): string {
  const codes: Readonly<Record<number, string>> = { 401: "unauthorized", 403: "forbidden" };
  const code = codes[status];
  if (code === undefined) return String(status);
  if (reply === undefined) return `${status} ${code}`;
  const said = codeOf(reply) ?? "no code";
  const isChallenged = status !== 401 || reply.headers["www-authenticate"]?.startsWith("Bearer ") === true;
  return `${status} ${said}${isChallenged ? "" : " without a challenge"}`;
}

/** What its clients know the codes as. */
const ICEBERG_CODES: Readonly<Record<string, string>> = {
  NotAuthorizedException: "unauthorized",
  ForbiddenException: "forbidden",
};

/** The stable code of an error; where a protocol has a form of its own, the reason of an `ErrorInfo`, or in its `data`. */
function codeOf({ json }: Reply): string | undefined {
  const details = json["details"] as { reason?: string }[] | undefined;
  const reason = details?.find((detail) => detail.reason !== undefined)?.reason;
  const error = json["error"] as { code?: string; type?: string; data?: { code: string } } | undefined;
  return ICEBERG_CODES[error?.type ?? ""] ?? error?.data?.code ?? error?.code ?? reason;
}

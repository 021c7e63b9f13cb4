import { expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { OPEN_TABLES_METRICS } from "./metrics.ts";
import { partitionOf, readPolicy, TableSessions, type AssumeRole } from "./sessions.ts";

const ROLE = "arn:aws:iam::123456789012:role/readers";
const HOUR_MS = 3_600_000;
const table = { id: 7, database: "d", name: "t" };
const PLACES = ["s3://bucket/engine/d/t/", "s3://bucket/engine/_iceberg/7/"];

/** Sessions of a service that answers when it is told to. */
function subject(answer?: AssumeRole) {
  const clock = new ManualClock();
  const metrics = createMetrics();
  const asked: Parameters<AssumeRole>[0][] = [];
  const assumeRole: AssumeRole = async (of) => {
    asked.push(of);
    if (answer !== undefined) return await answer(of);
    const expiresAtMs = clock.nowMs() + of.seconds * 1_000;
    return { accessKeyId: `key${asked.length}`, secretAccessKey: "secret", sessionToken: "token", expiresAtMs };
  };
  const sessions = new TableSessions({ clock, log: silentLog, metrics }, ROLE, assumeRole);
  const keyOf = async (of = table, places = PLACES) => (await sessions.of(of, places)).accessKeyId;
  return { clock, metrics, asked, sessions, keyOf };
}

test("a session may read the objects of a table's places, and nothing else", () => {
  expect(JSON.parse(readPolicy(PLACES, "aws"))).toEqual({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: ["s3:GetObject"],
        Resource: ["arn:aws:s3:::bucket/engine/d/t/*", "arn:aws:s3:::bucket/engine/_iceberg/7/*"],
      },
    ],
  });
});

test("the policy of the longest names is no longer than the service takes", () => {
  const [bucket, prefix, name] = ["b".repeat(255), "p".repeat(256), "n".repeat(128)];
  const id = Number.MAX_SAFE_INTEGER;
  const places = [`s3://${bucket}/${prefix}/${name}/${name}/`, `s3://${bucket}/${prefix}/_iceberg/${id}/`];
  expect(readPolicy(places, "aws-us-gov").length).toBeLessThanOrEqual(2_048);
});

test("buckets are of the part of the cloud that the role is of", () => {
  expect(partitionOf(ROLE)).toBe("aws");
  expect(partitionOf("arn:aws-us-gov:iam::1:role/r")).toBe("aws-us-gov");
  expect(partitionOf("arn:aws-cn:iam::1:role/r")).toBe("aws-cn");
  expect(partitionOf("arn:xxx:xxx:xxx:xxx:xxxx")).toBe("aws");
});

test("a session is asked for by its table for an hour, and shared until half of it has passed", async () => {
  const { clock, asked, keyOf } = subject();
  expect(await keyOf()).toBe("key1");
  expect(asked).toEqual([{ name: "engine-table-7", policy: readPolicy(PLACES, "aws"), seconds: 3_600 }]);
  clock.advance(HOUR_MS / 2 - 1);
  expect(await keyOf()).toBe("key1");
  clock.advance(1);
  expect(await keyOf()).toBe("key2");
  expect(asked).toHaveLength(2);
});

test("all who come at once wait for one session, and each table has its own", async () => {
  const { asked, keyOf } = subject();
  expect(await Promise.all([keyOf(), keyOf(), keyOf()])).toEqual(["key1", "key1", "key1"]);
  // A table of that name that is made anew is another one.
  const anew = keyOf({ ...table, id: 8 }, ["s3://bucket/engine/d/t/", "s3://bucket/engine/_iceberg/8/"]);
  expect([await anew, await keyOf()]).toEqual(["key2", "key1"]);
  expect(asked.map(({ name }) => name)).toEqual(["engine-table-7", "engine-table-8"]);
});

test("a failure is told to all who wait, without what the service says of accounts, and the next one asks again", async () => {
  const refusal = Object.assign(new Error("User: arn:aws:iam::1:user/me is not authorized"), {
    name: "AccessDenied",
    $metadata: { httpStatusCode: 403 },
  });
  const answers = [refusal, undefined];
  const { metrics, asked, sessions } = subject(() => {
    const error = answers.shift();
    const session = { accessKeyId: "key", secretAccessKey: "secret", sessionToken: "token", expiresAtMs: Infinity };
    return error === undefined ? Promise.resolve(session) : Promise.reject(error);
  });
  const both = await Promise.allSettled([sessions.of(table, PLACES), sessions.of(table, PLACES)]);
  const said = new EngineError(
    "unavailable",
    'there are no keys for table "d.t" now (AccessDenied, HTTP 403); try again',
  );
  expect(both).toEqual([said, said].map((reason) => ({ status: "rejected", reason })));
  expect(asked).toHaveLength(1);
  expect((await sessions.of(table, PLACES)).accessKeyId).toBe("key");
  const counted = (await OPEN_TABLES_METRICS.of(metrics).sessions.get()).values;
  expect(counted.map(({ labels, value }) => [labels["outcome"], value])).toEqual([
    ["failed", 1],
    ["ok", 1],
  ]);
});

import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parseProfile, readProfile } from "./profile.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const OURS = (await readdir(FOLDER)).filter((name) => name.endsWith(".toml"));

const LEAST = `
clients = 4
rate = "closed"
duration = "1 s"
`;
const INGEST = `${LEAST}[ingest]
rows = 10
`;

test("there are profiles of ours", () => {
  expect(OURS).toEqual(expect.arrayContaining(["ingest-mib.toml", "query-one.toml", "health.toml", "mixed.toml"]));
});

test.each(OURS)("%s is a profile", async (name) => {
  const { duration, clients } = await readProfile(`${FOLDER}${name}`);
  expect(duration).toBeGreaterThan(0);
  expect(clients).toBeGreaterThan(0);
});

test("units become bytes, milliseconds and requests a second; what is not said has its default", () => {
  const profile = parseProfile(
    `clients = 4
     rate = "0.5/s"
     duration = "2 min"
     [ingest]
     share = 0.75
     body = "1.5 MiB"
     [[queries]]
     share = 0.25
     sql = "SELECT 1"`,
    "a.toml",
  );
  expect(profile).toEqual({
    role: "all_in_one",
    protocol: "http",
    tls: false,
    clients: 4,
    rate: { perSecond: 0.5 },
    arrivals: "even",
    duration: 120_000,
    data: { shape: "logs", tables: 1, rows_before: 0 },
    ingest: { share: 0.75, body: 1_572_864, keys: true, compression: "none" },
    queries: [{ share: 0.25, sql: "SELECT 1" }],
  });
});

test.each([
  ['"200/s"', { perSecond: 200 }],
  ['"saturation"', "saturation"],
  ['"closed"', "closed"],
])("the rate %s is understood", (text, rate) => {
  expect(parseProfile(INGEST.replace('"closed"', text), "a.toml").rate).toEqual(rate);
});

describe("a profile is refused in one sentence with file, key and remedy, when", () => {
  test.each([
    [
      "a key is unknown",
      `client = 3\n${INGEST}`,
      /^a\.toml: client is not a key of a profile: use one of role, .*clients/,
    ],
    [
      "a section's key is unknown",
      `${INGEST}row = 1`,
      /^a\.toml: ingest\.row is not a key .*: use one of share, body, rows/,
    ],
    [
      "a query's key is unknown",
      `${LEAST}[[queries]]\nsql = "SELECT 1"\ntext = ""`,
      /^a\.toml: queries\.0\.text is not .*: use one of share, name, sql$/,
    ],
    [
      "the rate is negative",
      INGEST.replace('"closed"', '"-5/s"'),
      'a.toml: rate takes a rate above 0 such as "200/s", or "saturation", or "closed"',
    ],
    ["the rate is 0", INGEST.replace('"closed"', '"0/s"'), "a.toml: rate takes a rate above 0"],
    ["the rate has no unit", INGEST.replace('"closed"', "200"), "a.toml: rate takes a rate above 0"],
    ["the rate is missing", INGEST.replace('rate = "closed"', ""), "a.toml: rate takes a rate above 0"],
    [
      "a duration has no unit",
      INGEST.replace('"1 s"', "30"),
      'a.toml: duration takes a time above 0 with its unit, such as "30 s"',
    ],
    ["a duration's unit is unknown", INGEST.replace('"1 s"', '"1 day"'), "a.toml: duration takes a time"],
    [
      "a duration's unit is a name of JavaScript's",
      INGEST.replace('"1 s"', '"1 constructor"'),
      "duration takes a time",
    ],
    [
      "a size has no unit",
      INGEST.replace("rows = 10", "body = 1000"),
      'a.toml: ingest.body takes a size above 0 with its unit, such as "1 MiB"',
    ],
    [
      "there are no clients",
      INGEST.replace("clients = 4", "clients = 0"),
      "a.toml: clients takes a whole number above 0",
    ],
    ["there are both a body and rows", `${INGEST}body = "1 MiB"`, "a.toml: ingest takes either body"],
    ["there is neither", `${LEAST}[ingest]`, "a.toml: ingest takes either body"],
    ["nothing is sent", LEAST, "a.toml: ingest is missing, as are [[queries]] and [health]: write one of them"],
    [
      "shares add up to less",
      `${LEAST}[health]\nshare = 0.5\n[[queries]]\nshare = 0.4\nsql = "SELECT 1"`,
      "a.toml: share adds up to 0.9 over [ingest], [[queries]] and [health]: make it 1",
    ],
    ["shares add up to more", `${INGEST}[health]\nshare = 0.5`, "a.toml: share adds up to 1.5"],
    ["a share is negative", `${LEAST}[health]\nshare = -1`, "a.toml: health.share takes the part of all requests"],
    ["the shape is unknown", `${INGEST}[data]\nshape = "loggs"`, 'a.toml: data.shape takes one of "logs", "wide"'],
    ["the role is unknown", `role = "king"\n${INGEST}`, 'a.toml: role takes one of "all_in_one", "edge"'],
    [
      "OTLP is to have bodies of a size",
      `protocol = "otlp"\n${LEAST}[ingest]\nbody = "1 MiB"`,
      "a.toml: ingest.rows is missing",
    ],
    ["OTLP is to have tables", `protocol = "otlp"\n${INGEST}[data]\ntables = 2`, "a.toml: data.tables must be 1"],
    ["it is not TOML", "clients = ", /^a\.toml: line 1: .*; mend the TOML there$/],
  ])("%s", (_why, text, message) => {
    expect(() => parseProfile(text, "a.toml")).toThrow(message);
    expect(() => parseProfile(text, "a.toml")).toThrow(/^[^\n]+$/);
  });
});

import { expect, test } from "vitest";
import { describeConfig } from "./describe.ts";
import { load } from "./option-samples.test-kit.ts";

test("secrets never stand in what is printed", () => {
  const env = {
    ENGINE_TOKEN: "hunter2",
    ENGINE_AUTH_TOKENS: "hunter2:admin",
    ENGINE_IDP_JWT_SECRET: "hunter2-".repeat(4),
    ENGINE_OAUTH_PROVIDERS: '{"github": {"client_id": "an-app", "client_secret": "hunter2"}}',
    ENGINE_CATALOG_URL: "postgres://user:hun%2Ft%40er2@db/engine?password=hunter2&x=1",
  };
  const described = describeConfig(load({ env }));
  const printed = JSON.stringify(described);
  for (const secret of ["hunter2", "hun%2Ft", "er2"]) expect(printed).not.toContain(secret);
  const valueOf = (name: string) => described.find((row) => row.name === name)?.value;
  expect(valueOf("token")).toBe("********");
  expect(valueOf("oauthProviders")).toBe('{"github":{"client_id":"an-app","client_secret":"********"}}');
  expect(valueOf("catalogUrl")).toBe("postgres://user:********@db/engine?password=********&x=1");
});

test("nor do they stand in the message about a catalog address that is none", () => {
  expect(() => load({ env: { ENGINE_CATALOG_URL: "postgres://user:hun/t@er2@db:x/engine" } })).toThrow(
    'ENGINE_CATALOG_URL is "postgres://user:********@db:x/engine"; expected sqlite:PATH or postgres://…',
  );
  expect(() => load({ env: { ENGINE_CATALOG_URL: "hunter2" } })).toThrow('is "********"');
});

test("a secret that nobody has set has no mask, whatever its kind", () => {
  const masked = (env: Record<string, string>) =>
    describeConfig(load({ env })).flatMap(({ name, value }) => (value === "********" ? [name] : []));
  expect(masked({})).toEqual([]);
  expect(masked({ ENGINE_AUTH_TOKENS: "hunter2:admin", ENGINE_LOCAL_PASSWORD: "admin" })).toEqual([
    "localPassword",
    "authTokens",
  ]);
});

test("unset secrets are shown as unset, and other values as they are", () => {
  const described = describeConfig(load({ env: { ENGINE_CORS_ALLOWED_ORIGINS: "*" } }));
  const valueOf = (name: string) => described.find((row) => row.name === name)?.value;
  expect(valueOf("token")).toBeNull();
  expect(valueOf("flushMaxRows")).toBe(8_000);
  expect(valueOf("stagingDisabled")).toBe(false);
  expect(valueOf("corsAllowedOrigins")).toEqual(["*"]);
  expect(valueOf("httpAddr")).toBe("0.0.0.0:8080");
});

test("a long value is cut in the message", () => {
  expect(() => load({ env: { ENGINE_WRITE_FORMAT: "x".repeat(10_000) } })).toThrow(/^.{1,299}$/s);
});

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { planOf } from "../../roles/plan.ts";
import { AUTH_OPTIONS } from "../../src/auth/options.ts";
import { ROLE_NAMES } from "../../src/config/kinds.ts";
import { loadConfig } from "../../src/config/load.ts";
import { valuesOf } from "../../src/config/option.ts";
import { withRows } from "../../src/config/options.ts";

/** The compose files, as text. Nothing in the tests starts them: docs/deploy.md says what was run by hand. */

const FOLDER = fileURLToPath(new URL("../../deploy/compose/", import.meta.url));
const seconds = z.string().regex(/^\d+s$/);

const service = z.strictObject({
  image: z.string().regex(/^\$\{(SERVER|POSTGRES|S3)_IMAGE:-[\w./:-]+\}$/),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
  restart: z.literal("unless-stopped"),
  read_only: z.literal(true).optional(),
  cap_drop: z.tuple([z.literal("ALL")]).optional(),
  security_opt: z.tuple([z.literal("no-new-privileges")]).optional(),
  tmpfs: z.tuple([z.literal("/tmp")]).optional(),
  mem_limit: z.string().regex(/^\dg$/),
  cpus: z.number(),
  stop_grace_period: seconds,
  ports: z.array(z.string().startsWith("127.0.0.1:")).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  secrets: z.array(z.string()),
  volumes: z.array(z.string()).default([]),
  healthcheck: z.strictObject({
    test: z.array(z.string()).min(2),
    interval: seconds,
    timeout: seconds,
    start_period: seconds,
    retries: z.number(),
  }),
  depends_on: z.record(z.string(), z.strictObject({ condition: z.literal("service_healthy") })).default({}),
});
const composeFile = z.looseObject({
  name: z.string(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.strictObject({})),
  secrets: z.record(z.string(), z.strictObject({ file: z.string().startsWith("./secrets/") })),
});

const parsed = (name: string) =>
  composeFile.parse(parseYaml(readFileSync(join(FOLDER, name), "utf8"), { merge: true }));
const FILES = { "compose.yaml": parsed("compose.yaml"), "compose.cluster.yaml": parsed("compose.cluster.yaml") };
const serversOf = ({ services }: z.infer<typeof composeFile>) =>
  Object.entries(services).filter(([, { image }]) => image.startsWith("${SERVER_IMAGE"));

let folder = "";
const makeSecrets = () => execFileSync(join(folder, "make-secrets"), { encoding: "utf8" });
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-compose-"));
  copyFileSync(join(FOLDER, "make-secrets"), join(folder, "make-secrets"));
  makeSecrets();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The configuration of a service, with the secrets that the script made. */
function configOf(environment: Readonly<Record<string, string>>) {
  const env = Object.entries(environment).map(([name, value]) => [
    name,
    value.replace(/^\/run\/secrets\//, `${folder}/secrets/`),
  ]);
  return loadConfig({ env: Object.fromEntries(env) as Record<string, string>, rows: FEATURE_ROWS, userHome: folder });
}

describe.each(Object.entries(FILES))("%s", (_name, file) => {
  const secretVariables = Object.values(withRows(FEATURE_ROWS)).flatMap(({ env, secret }) =>
    env !== undefined && secret === true ? [env] : [],
  );

  test("starts servers with options that there are, and with their secrets in files", () => {
    for (const [, { environment }] of serversOf(file)) {
      const loaded = configOf(environment);
      expect(loaded.warnings.filter((warning) => !warning.includes("can read"))).toEqual([]);
      expect(planOf(loaded).notes).toEqual([]);
      expect(secretVariables.filter((name) => Object.hasOwn(environment, name))).toEqual([]);
    }
  });

  test("knows the token that the script made, as an admin's", () => {
    const token = readFileSync(join(folder, "secrets/admin_token"), "utf8").trim();
    for (const [, { environment }] of serversOf(file)) {
      const { authTokens, securityApiKeys } = valuesOf(AUTH_OPTIONS, configOf(environment).config);
      const known = [...authTokens, ...securityApiKeys];
      expect(known).toHaveLength(1);
      expect(known[0]).toMatchObject({ role: "admin" });
      expect(Object.values(known[0] ?? {})).toContain(token);
    }
  });

  test("gives each service the secrets that it names, and the script makes all of them", () => {
    for (const { environment, secrets, command = [] } of Object.values(file.services)) {
      const named = [...Object.values(environment), ...command].flatMap((text) =>
        [...text.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, name]) => name),
      );
      expect(new Set(named)).toEqual(new Set(secrets));
    }
    const used = Object.values(file.services).flatMap(({ secrets }) => secrets);
    expect(new Set(Object.keys(file.secrets))).toEqual(new Set(used));
    for (const [name, { file: path }] of Object.entries(file.secrets)) {
      expect(path).toBe(`./secrets/${name}`);
      expect(readdirSync(join(folder, "secrets"))).toContain(name);
    }
  });

  test("runs servers without privileges, on a read-only root, and lets them drain", () => {
    for (const [, { environment, ...rest }] of serversOf(file)) {
      expect(rest).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges"] });
      const { drainTimeoutSecs } = configOf(environment).config;
      expect(Number.parseInt(rest.stop_grace_period, 10)).toBeGreaterThanOrEqual(drainTimeoutSecs + 15);
    }
  });
});

test("the cluster has a server for every role, and each waits for what it needs", () => {
  const cluster = FILES["compose.cluster.yaml"];
  const roles = serversOf(cluster).map(([name, { environment }]) => `${name}: ${environment["ENGINE_ROLES"]}`);
  const parts = ROLE_NAMES.filter((name) => name !== "all_in_one");
  expect(new Set(roles)).toEqual(new Set(parts.map((name) => `${name}: ${name}`)));
  for (const [name, { depends_on: needs }] of serversOf(cluster)) {
    expect(Object.keys(needs).sort()).toEqual(name === "edge" ? ["ingest", "query"] : ["postgres", "s3"]);
  }
  // Every server's volume is its own: one with a name would be shared by all of a role.
  expect(serversOf(cluster).flatMap(([, { volumes }]) => volumes)).toEqual([]);
});

test("the script keeps secrets that are there, and others out of their folder", () => {
  const secrets = join(folder, "secrets");
  const contents = () => readdirSync(secrets).map((name) => readFileSync(join(secrets, name), "utf8"));
  const before = contents();
  expect(new Set(before).size).toBe(before.length);
  expect(makeSecrets()).toBe("");
  expect(contents()).toEqual(before);
  expect(statSync(secrets).mode & 0o777).toBe(0o700);
});

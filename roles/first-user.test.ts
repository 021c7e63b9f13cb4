import { FEATURE_ROWS } from "./features.test-kit.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openAccess, type Access } from "../src/auth/access.test-kit.ts";
import { loadConfig } from "../src/config/load.ts";
import { Cleanup } from "../src/core/lifecycle.ts";
import { createLog } from "../src/core/log.ts";
import { makeFirstUser } from "./first-user.ts";
import { createParts } from "./parts.ts";

const TOKENS = { ENGINE_AUTH_TOKENS: "a-long-sesame-token:admin" };
const SESSION = { ENGINE_AUTH_BACKEND: "session" };
const IDP = { ENGINE_AUTH_BACKEND: "idp", ENGINE_IDP_URL: "https://idp.example" };
const OIDC = { ENGINE_AUTH_BACKEND: "oidc" };
const OWN = { ENGINE_LOCAL_PASSWORD: "battery staple" };

let access: Access;
beforeEach(async () => void (access = await openAccess()));
afterEach(() => access.close());

type Setting = { host?: string; isLocal?: boolean; typed?: string };

/** Who is there after a start, and what was asked for. */
async function started(env: Record<string, string>, { host = "127.0.0.1", isLocal = true, typed }: Setting = {}) {
  const asked: string[] = [];
  const askPassword = async (why: string): Promise<string> => {
    asked.push(why);
    return typed ?? "";
  };
  const loaded = loadConfig({ env: { ENGINE_HOME: "/nowhere", ...env }, rows: FEATURE_ROWS });
  const parts = createParts(
    { ...loaded, isLocal, ...(typed !== undefined && { askPassword }) },
    createLog("silent"),
    new Cleanup(),
  );
  const isOn = env["ENGINE_AUTH_TOKENS"] !== undefined || env["ENGINE_AUTH_BACKEND"] !== undefined;
  await makeFirstUser(parts, { users: access.users, isOn, listen: { host, port: 1 } });
  return { users: (await access.users.list()).map(({ name, role }) => `${name} ${role}`), asked };
}

const signsIn = (name: string, password: string) =>
  access.signIn.signIn(name, password, { address: "10.0.0.1", requestId: "r" }).then(
    () => true,
    () => false,
  );

describe("a catalog without users", () => {
  test.each([{}, SESSION])("gets admin/admin where only this machine reaches the server, with %j", async (env) => {
    expect(await started(env)).toEqual({ users: ["admin admin"], asked: [] });
    expect(await signsIn("admin", "admin")).toBe(true);
  });

  test.each([TOKENS, IDP, OIDC])("gets no user with a password that everybody knows with %j", async (env) => {
    for (const host of ["127.0.0.1", "0.0.0.0"]) {
      expect(await started(env, { host })).toEqual({ users: [], asked: [] });
      expect(await started({ ...env, ENGINE_LOCAL_PASSWORD: "letmein" }, { host, typed: "x" })).toEqual({
        users: [],
        asked: [],
      });
      const operators = { ENGINE_ADMIN_USER: "root", ENGINE_ADMIN_PASSWORD: "Root" };
      expect(await started({ ...env, ...operators }, { host })).toEqual({ users: [], asked: [] });
    }
  });

  test.each([{}, SESSION, TOKENS, IDP, OIDC])("gets one with a password that was chosen, with %j", async (env) => {
    expect(await started({ ...env, ...OWN }, { host: "0.0.0.0" })).toMatchObject({ users: ["admin admin"] });
    expect(await signsIn("admin", "battery staple")).toBe(true);
  });

  test.each([{}, SESSION, { ENGINE_LOCAL_USER: "ann", ENGINE_LOCAL_PASSWORD: "ann" }])(
    "starts nothing that others reach without one, with %j",
    async (env) => {
      const refusal = { exitCode: 2, message: expect.stringContaining("set ENGINE_LOCAL_PASSWORD") as string };
      await expect(started(env, { host: "0.0.0.0" })).rejects.toMatchObject(refusal);
      expect(await access.users.list()).toEqual([]);
    },
  );

  test("gets the password that was typed, if not everybody knows it", async () => {
    const at = { host: "10.0.0.1" };
    await expect(started({}, { ...at, typed: "password" })).rejects.toMatchObject({ exitCode: 2 });
    await expect(started({}, { ...at, typed: "short" })).rejects.toMatchObject({ code: "invalid_parameter" });
    expect(await access.users.list()).toEqual([]);
    const { users, asked } = await started(SESSION, { ...at, typed: "battery staple" });
    expect(users).toEqual(["admin admin"]);
    expect(asked).toEqual([expect.stringContaining("other machines can reach 10.0.0.1:1, and the first user, admin,")]);
    expect([await signsIn("admin", "admin"), await signsIn("admin", "battery staple")]).toEqual([false, true]);
  });

  test("of a deployment gets the operator's, or none", async () => {
    const at = { isLocal: false, host: "0.0.0.0" };
    expect(await started({}, at)).toEqual({ users: [], asked: [] });
    const operators = { ...SESSION, ENGINE_ADMIN_USER: "root", ENGINE_ADMIN_PASSWORD: "correct horse" };
    expect(await started(operators, at)).toEqual({ users: ["root admin"], asked: [] });
  });
});

test("a catalog with users is left as it is", async () => {
  await started(OWN);
  expect(await started({ ENGINE_LOCAL_USER: "other" }, { host: "0.0.0.0" })).toEqual({
    users: ["admin admin"],
    asked: [],
  });
});

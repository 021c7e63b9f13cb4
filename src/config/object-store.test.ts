import { describe, expect, it } from "vitest";
import { StartupError } from "../core/errors.ts";
import { loadConfig } from "./load.ts";
import { objectStoreSettings } from "./object-store.ts";

const load = (env: Record<string, string>) => loadConfig({ env, workingDir: "/", userHome: "/home/u", cores: 1 });
const settings = (env: Record<string, string>) => objectStoreSettings(load(env));

const DEFAULTS = {
  kind: "s3",
  bucket: "engine",
  region: "us-east-1",
  endpoint: undefined,
  credentials: undefined,
  pathStyle: true,
  allowHttp: true,
};

function refusal(env: Record<string, string>): string {
  try {
    settings(env);
  } catch (error) {
    if (error instanceof StartupError && error.exitCode === 2) return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("object store settings", () => {
  it("are those of the local folder when nothing is set", () => {
    expect(settings({})).toEqual({ kind: "local", root: "/home/u/.engine/data" });
    expect(settings({ ENGINE_LOCAL_DATA: "/data", ENGINE_PATH_PREFIX: "p" })).toEqual({ kind: "local", root: "/data" });
    expect(settings({ ENGINE_OBJSTORE_BUCKET: "  " }).kind).toBe("local");
  });

  it.each([
    [{ ENGINE_OBJSTORE_ENDPOINT: "http://s:1" }, { endpoint: "http://s:1" }],
    [{ ENGINE_OBJSTORE_REGION: "eu-west-1" }, { region: "eu-west-1" }],
    // Even to what is the default: somebody means the S3 store.
    [{ ENGINE_OBJSTORE_BUCKET: "engine" }, {}],
    [{ ENGINE_OBJSTORE_PATH_STYLE: "false" }, { pathStyle: false }],
    [{ ENGINE_OBJSTORE_ALLOW_HTTP: "false" }, { allowHttp: false }],
    [
      { ENGINE_OBJSTORE_ACCESS_KEY_ID: "a", ENGINE_OBJSTORE_SECRET_ACCESS_KEY: "s" },
      { credentials: { accessKeyId: "a", secretAccessKey: "s" } },
    ],
  ])("are those of the S3 store with %j", (env, expected) => {
    expect(settings(env)).toEqual({ ...DEFAULTS, ...expected });
    expect(settings({ ...env, ENGINE_LOCAL_MODE: "0" })).toEqual({ ...DEFAULTS, ...expected });
    expect(settings({ ...env, ENGINE_LOCAL_MODE: "1" }).kind).toBe("local");
  });

  it("see the file as well", () => {
    const loaded = loadConfig({
      env: { ENGINE_CONFIG: "/e.toml" },
      readFile: () => '[objstore]\nbucket = "logs"\n',
      userHome: "/home/u",
    });
    expect(objectStoreSettings(loaded)).toEqual({ ...DEFAULTS, bucket: "logs" });
  });

  it("need both keys or neither", () => {
    expect(refusal({ ENGINE_OBJSTORE_ACCESS_KEY_ID: "a" })).toContain(
      "ENGINE_OBJSTORE_ACCESS_KEY_ID is set and ENGINE_OBJSTORE_SECRET_ACCESS_KEY is not",
    );
    const message = refusal({ ENGINE_OBJSTORE_SECRET_ACCESS_KEY: "hunter2" });
    expect(message).toContain("ENGINE_OBJSTORE_SECRET_ACCESS_KEY is set and ENGINE_OBJSTORE_ACCESS_KEY_ID is not");
    expect(message).not.toContain("hunter2");
    expect(settings({ ENGINE_OBJSTORE_ACCESS_KEY_ID: "a", ENGINE_LOCAL_MODE: "1" }).kind).toBe("local");
  });

  it("take no endpoint without TLS where that is forbidden", () => {
    const env = { ENGINE_OBJSTORE_ALLOW_HTTP: "false", ENGINE_OBJSTORE_ENDPOINT: "HTTP://store:9000" };
    expect(refusal(env)).toContain("ENGINE_OBJSTORE_ENDPOINT is http://store:9000, and ENGINE_OBJSTORE_ALLOW_HTTP");
    expect(settings({ ...env, ENGINE_OBJSTORE_ENDPOINT: "https://store" })).toMatchObject({
      endpoint: "https://store",
    });
  });

  it("that have no effect are named", () => {
    const env = { ENGINE_OBJSTORE_BUCKET: "logs", ENGINE_LOCAL_DATA: "/data" };
    expect(load(env).warnings).toEqual(["ENGINE_LOCAL_DATA has no effect, because ENGINE_OBJSTORE_BUCKET is set"]);
    expect(load({ ...env, ENGINE_LOCAL_MODE: "1" }).warnings).toEqual([
      "ENGINE_OBJSTORE_BUCKET has no effect, because ENGINE_LOCAL_MODE is set",
    ]);
  });
});

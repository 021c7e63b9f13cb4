import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { integer, path, type Sample } from "./load-samples.test-kit.ts";
import { checkDefaults, checkSamples, failure, load, loadToml } from "./option-samples.test-kit.ts";
import { OPTIONS, type OptionName } from "./options.ts";

/** A new option has no sample, and the types say so. */
const SAMPLES: Record<OptionName, Sample> = {
  configFile: path("engine.toml"),
  runtimeDir: path("runtime"),
  home: path("home"),
  localDb: path("db"),
  localData: path("data"),
  catalogUrl: {
    one: ["sqlite:/var/c.db", { kind: "sqlite", path: "/var/c.db" }],
    two: ["postgres://u:pw@db:5432/engine", { kind: "postgres", url: "postgres://u:pw@db:5432/engine" }],
    bad: [
      "mysql://u:hunter2@h",
      "catalog.db",
      "sqlite:",
      "sqlite::memory:",
      "sqlite://host/c.db",
      "postgres://u:hunter2@h:99999",
    ],
    badToml: ["1", "true"],
  },
  catalogMaxConns: integer(4, 100, 1, 1_000),
  catalogAcquireTimeoutSecs: integer(1, 60, 1, 3_600),
  serverPort: integer(9000, 0, 0, 65_535),
  httpAddr: {
    one: ["127.0.0.1:80", { host: "127.0.0.1", port: 80 }],
    two: ["[::1]:0", { host: "::1", port: 0 }],
    bad: [
      "80",
      ":80",
      "host",
      "host:",
      "host:65536",
      "host:-1",
      "[::zz]:1",
      "::1:80",
      "a b:80",
      "http://h:80",
      "h:80/x",
    ],
    badToml: ["8080"],
  },
  advertiseUrl: {
    one: ["https://one.engine.example:8080/", "https://one.engine.example:8080"],
    two: ["http://[::1]:7777/a", "http://[::1]:7777/a"],
    bad: ["engine.example", "https://u:hunter2@a.example", "https://a.example?x=1", "ftp://a"],
    badToml: ["7"],
  },
  localHttpAddr: {
    one: ["localhost:7000", { host: "localhost", port: 7000 }],
    two: ["0.0.0.0:65535", { host: "0.0.0.0", port: 65_535 }],
    bad: ["7777"],
    badToml: ["7777"],
  },
  httpDriver: { one: ["node", "node"], two: ["UWS", "uws"], bad: ["express"], badToml: ["1"] },
  httpKeepAliveSecs: integer(5, 350, 5, 7_200),
  drainTimeoutSecs: integer(0, 3600, 0, 3_600),
  roles: {
    one: ["edge, query", ["edge", "query"]],
    two: ["Nonsense", ["nonsense"], '["nonsense"]'],
    bad: [","],
    badToml: ["1", "[1]", "[]"],
  },
  queryPeers: {
    one: ["http://q:1/, https://r/a", ["http://q:1", "https://r/a"], '["http://q:1", "https://r/a/"]'],
    two: ["http://[::1]:8080,http://[::1]:8080", ["http://[::1]:8080"]],
    bad: ["q:1", "http://q:1,,http://r", "http://u:hunter2@q", "http://q?a"],
    badToml: ["1", "[1]", '["nonsense"]', "[]"],
  },
  ingestPeers: {
    one: ["http://i:1", ["http://i:1"], '["http://i:1"]'],
    two: ["http://i:1,http://j:1", ["http://i:1", "http://j:1"]],
    bad: ["ftp://i"],
    badToml: ["true"],
  },
  drainNoticeSecs: integer(0, 30, 0, 3_600),
  corsAllowedOrigins: {
    one: ["https://a.example", ["https://a.example"], '["https://a.example"]'],
    two: ["http://localhost:3000, *", ["http://localhost:3000", "*"]],
    bad: ["a.example", "https://a.example/path", "https://a,,https://b", "ftp://a"],
    badToml: ["1", "[1]", '["nonsense"]', "[]"],
  },
  tlsCert: path("server.crt"),
  tlsKey: path("server.key"),
  httpAllowedHosts: {
    one: ["engine.example", ["engine.example"], '["engine.example"]'],
    two: ["Engine, db_1.internal", ["engine", "db_1.internal"]],
    bad: ["a:80", "https://a", "a..b", "-a", "a b", "*", "a,,b", "[::1]"],
    badToml: ["1", "[1]", "[]"],
  },
  trustedProxies: {
    one: ["10.0.0.0/8", ["10.0.0.0/8"], '["10.0.0.0/8"]'],
    two: ["192.0.2.7, fd00::/8, ::1", ["192.0.2.7", "fd00::/8", "::1"]],
    bad: ["10.0.0.0/33", "fd00::/129", "10.0.0", "proxy.internal", "10.0.0.0/", "1.2.3.4,,", "fe80::1%eth0"],
    badToml: ["1", "[1]", "[]"],
  },
  logLevel: { one: ["debug", "debug"], two: ["SILENT", "silent"], bad: ["verbose"], badToml: ["3"] },
  pathPrefix: {
    one: ["prod/eu-1", "prod/eu-1"],
    two: ["e", "e"],
    bad: ["/a", "a/", "a//b", "../a", "_x", "a b", "ä"],
    badToml: ["1"],
  },
  localMode: { one: ["1", true, "true"], two: ["off", false], bad: ["2"], badToml: ["1"] },
  objstoreEndpoint: {
    one: ["http://127.0.0.1:9000/", "http://127.0.0.1:9000"],
    two: ["https://s3.example.com", "https://s3.example.com"],
    bad: ["s3.example.com", "s3://bucket", "http://u:hunter2@h"],
    badToml: ["9000"],
  },
  objstoreRegion: { one: ["eu-west-1", "eu-west-1"], two: ["x", "x"], bad: ["eu west", "-x", "a/b"], badToml: ["1"] },
  objstoreBucket: {
    one: ["my.bucket-1", "my.bucket-1"],
    two: ["Old_Bucket", "Old_Bucket"],
    bad: ["ab", "-abc", "a/b", "a b c", "x".repeat(256)],
    badToml: ["1"],
  },
  objstoreAccessKeyId: {
    one: ["AKIA123", "AKIA123"],
    two: ["user@example+x=", "user@example+x="],
    bad: ["a/b", "a,b", "a b", "x".repeat(129)],
    badToml: ["1"],
  },
  objstoreSecretAccessKey: {
    one: ["abc/DEF+1=", "abc/DEF+1="],
    two: ["s", "s"],
    bad: ["hunter2 hunter2", "hunter2é"],
    badToml: ["7"],
  },
  objstorePathStyle: { one: ["false", false, "false"], two: ["1", true], bad: ["path"], badToml: ["1"] },
  objstoreAllowHttp: { one: ["no", false, "false"], two: ["true", true], bad: ["http"], badToml: ["0"] },
  writeFormat: { one: ["parquet", "parquet"], two: ["tlm", "tlm"], bad: ["csv"], badToml: ["false"] },
  parquetEncodings: { one: ["plain", "plain"], two: ["v2", "v2"], bad: ["v1"], badToml: ["2"] },
  artifactGcPollSecs: integer(60, 900, 1, 86_400),
  artifactGcGraceSecs: integer(60, 900, 60, 315_360_000),
  serverUrl: {
    one: ["https://engine.example.com/base/", "https://engine.example.com/base"],
    two: ["http://127.0.0.1:7777", "http://127.0.0.1:7777"],
    bad: ["127.0.0.1:7777", "ftp://h", "http://u:hunter2@h", "http://h/?a=1", "http://h/#x", "http:"],
    badToml: ["7777"],
  },
  token: { one: ["abc.DEF-1", "abc.DEF-1"], two: ["t", "t"], bad: ["hunter2 hunter2", "hunter2é"], badToml: ["7"] },
};

checkSamples(OPTIONS, SAMPLES);

const FILE = "/etc/engine/engine.toml";

checkDefaults(OPTIONS, {
  configFile: undefined,
  home: "/home/u/.engine",
  runtimeDir: undefined,
  localDb: "/home/u/.engine/catalog.db",
  localData: "/home/u/.engine/data",
  catalogUrl: { kind: "sqlite", path: "/home/u/.engine/catalog.db" },
  catalogMaxConns: 16,
  catalogAcquireTimeoutSecs: 10,
  serverPort: undefined,
  httpAddr: { host: "0.0.0.0", port: 8080 },
  advertiseUrl: undefined,
  localHttpAddr: { host: "127.0.0.1", port: 7777 },
  httpDriver: "auto",
  httpKeepAliveSecs: 75,
  drainTimeoutSecs: 30,
  roles: ["all_in_one"],
  queryPeers: undefined,
  ingestPeers: undefined,
  drainNoticeSecs: undefined,
  corsAllowedOrigins: undefined,
  tlsCert: undefined,
  tlsKey: undefined,
  httpAllowedHosts: [],
  trustedProxies: [],
  logLevel: "info",
  pathPrefix: "engine",
  localMode: false,
  objstoreEndpoint: undefined,
  objstoreRegion: "us-east-1",
  objstoreBucket: "engine",
  objstoreAccessKeyId: undefined,
  objstoreSecretAccessKey: undefined,
  objstorePathStyle: true,
  objstoreAllowHttp: true,
  writeFormat: "tlm",
  parquetEncodings: "v2",
  artifactGcPollSecs: 300,
  artifactGcGraceSecs: 21_600,
  serverUrl: undefined,
  token: undefined,
});

test("nothing is set, and there is nothing to be warned of, unless somebody sets it", () => {
  const { origins, warnings } = load();
  expect(new Set(Object.values(origins))).toEqual(new Set(["default"]));
  expect(warnings).toEqual([]);
});

test("the burst is twice the rate unless it is set", () => {
  const { config, origins } = load({ env: { ENGINE_INGEST_RATE_RPS: "25" } });
  expect([config.ingestRateRps, config.ingestRateBurst, origins.ingestRateBurst]).toEqual([
    25,
    50,
    "default (from ENGINE_INGEST_RATE_RPS)",
  ]);
  expect(load({ env: { ENGINE_INGEST_RATE_RPS: "25", ENGINE_INGEST_RATE_BURST: "1" } }).config.ingestRateBurst).toBe(1);
});

test("a server runs as many jobs as data sources were given workers, unless it is told", () => {
  const { config, origins } = load({ env: { ENGINE_DATA_SOURCE_WORKERS: "9" } });
  expect([config.fabricWorkers, origins.fabricWorkers]).toEqual([9, "default (from ENGINE_DATA_SOURCE_WORKERS)"]);
  const env = { ENGINE_DATA_SOURCE_WORKERS: "9", ENGINE_FABRIC_WORKERS: "2" };
  expect(load({ env }).config.fabricWorkers).toBe(2);
});

test("defaults follow the options that they are derived from, and say so", () => {
  const { config, origins } = load({ env: { ENGINE_HOME: "e" } });
  expect(config.catalogUrl).toEqual({ kind: "sqlite", path: "/somewhere/e/catalog.db" });
  expect(origins.catalogUrl).toBe("default (from ENGINE_HOME)");
  const ported = loadToml("[server]\nport = 9999\n");
  expect(ported.config.httpAddr).toEqual({ host: "0.0.0.0", port: 9999 });
  expect(ported.origins.httpAddr).toBe("default (from server.port in /etc/engine/engine.toml)");
  expect(ported.config.localHttpAddr).toEqual({ host: "127.0.0.1", port: 9999 });
  expect(ported.origins.localHttpAddr).toBe("default (from server.port in /etc/engine/engine.toml)");
  const local = loadToml('server = { port = 9999, local_http_addr = "127.0.0.1:1" }');
  expect(local.config.localHttpAddr).toEqual({ host: "127.0.0.1", port: 1 });
  expect(load({ cores: 200 }).config.sealThreads).toBe(64);
});

test("relative paths start at the working directory, in the file at its folder", () => {
  expect(load({ env: { ENGINE_LOCAL_DATA: "data" } }).config.localData).toBe("/somewhere/data");
  expect(loadToml('storage.local_data = "data"').config.localData).toBe("/etc/engine/data");
  expect(load({ env: { ENGINE_CATALOG_URL: "sqlite:c.db" } }).config.catalogUrl).toEqual({
    kind: "sqlite",
    path: "/somewhere/c.db",
  });
});

describe("warnings", () => {
  test("an unknown variable is named, with the nearest known one", () => {
    const { warnings } = load({ env: { ENGINE_FLUSH_MAX_ROW: "5", ENGINE_ZZZ: "1", ENGINE_EMPTY: "", PATH: "/bin" } });
    expect(warnings).toEqual([
      "ENGINE_FLUSH_MAX_ROW is no option of this version and has no effect; did you mean ENGINE_FLUSH_MAX_ROWS?",
      "ENGINE_ZZZ is no option of this version and has no effect",
    ]);
  });

  test("an unknown key of the file is named, with the nearest known one", () => {
    const { warnings, config } = loadToml(
      "[ingest]\nflush_max_row = 5\n[[unheard.things]]\nname = 1\n[x.toString]\ny = 1\n",
    );
    expect(warnings).toEqual([
      "ingest.flush_max_row in /etc/engine/engine.toml is no option of this version and has no effect; did you mean ingest.flush_max_rows?",
      "unheard.things in /etc/engine/engine.toml is no option of this version and has no effect",
      "x.toString.y in /etc/engine/engine.toml is no option of this version and has no effect",
    ]);
    expect(config.flushMaxRows).toBe(8_000);
  });

  test("a key that would change a prototype stops the start", () => {
    expect(() => loadToml("[x.__proto__]\ny = 1\n")).toThrow("x.__proto__: the key is not accepted");
    expect(() => loadToml('[oauth.providers]\n"\\u005f_proto__" = { client_id = "x" }\n')).toThrow(
      "the key is not accepted",
    );
    expect(loadToml('[server]\nroles = "x" # __proto__\n').warnings).toHaveLength(1);
  });

  test("a setting whose place another takes is named", () => {
    const env = { ENGINE_CATALOG_URL: "sqlite:/c.db", ENGINE_LOCAL_DB: "/l.db" };
    expect(load({ env }).warnings).toEqual(["ENGINE_LOCAL_DB has no effect, because ENGINE_CATALOG_URL is set"]);
    const { warnings } = loadToml("server.port = 1", { env: { ENGINE_HTTP_ADDR: "h:2" } });
    expect(warnings).toEqual([
      "server.port in /etc/engine/engine.toml has no effect on `engine server`, because ENGINE_HTTP_ADDR is set",
    ]);
    expect(loadToml("server.port = 1", { env: { ENGINE_LOCAL_HTTP_ADDR: "h:2" } }).warnings).toEqual([
      "server.port in /etc/engine/engine.toml has no effect on `engine serve`, because ENGINE_LOCAL_HTTP_ADDR is set",
    ]);
  });
});

describe("the file", () => {
  test("is read from the disk, and a flag wins over the variable", () => {
    const folder = mkdtempSync(join(tmpdir(), "engine-config-"));
    try {
      const file = join(folder, "a.toml");
      writeFileSync(file, "\uFEFF[query]\nworkers = 3\n");
      const { config, origins } = load({ env: { ENGINE_CONFIG: "/missing" }, flags: { configFile: file } });
      expect(config.queryWorkers).toBe(3);
      expect(config.configFile).toBe(file);
      expect(origins.configFile).toBe("--config");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("that is missing stops the start", () => {
    const error = failure(() => load({ env: { ENGINE_CONFIG: "/missing/engine.toml" } }));
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain("ENGINE_CONFIG: cannot read the configuration file: ENOENT");
  });

  test("that is no TOML stops the start, naming the place and quoting nothing of it", () => {
    const error = failure(() => loadToml('[client]\ntoken = "hunter2\nx = 1\n'));
    expect(error.exitCode).toBe(2);
    expect(error.message).toMatch(/^\/etc\/engine\/engine\.toml, line 2, column \d+: /);
    expect(error.message).not.toContain("hunter2");
    expect(error.message).not.toContain("\n");
  });

  test("that is far too large is some other file", () => {
    expect(failure(() => loadToml(`#${"x".repeat(1_048_576)}`)).message).toContain("is no configuration file");
  });

  test("with a table in the place of a value is refused", () => {
    const error = failure(() => loadToml("[ingest.flush_max_rows]\nx = 1\n"));
    expect(error.message).toContain("ingest.flush_max_rows in /etc/engine/engine.toml is a table; expected an integer");
  });
});

describe("relations", () => {
  test("a flush fits into what is admitted", () => {
    const env = { ENGINE_FLUSH_MAX_BYTES: "128MiB", ENGINE_INGEST_MAX_INFLIGHT_BYTES: "64MiB" };
    const error = failure(() => load({ env }));
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain("ENGINE_FLUSH_MAX_BYTES (134217728, ENGINE_FLUSH_MAX_BYTES) must not pass");
    expect(load({ env: { ...env, ENGINE_FLUSH_MAX_BYTES: "64MiB" } }).config.flushMaxBytes).toBe(67_108_864);
  });

  test("the identity provider has an address", () => {
    const error = failure(() => load({ env: { ENGINE_AUTH_BACKEND: "idp" } }));
    expect(error.message).toBe("ENGINE_AUTH_BACKEND (idp, ENGINE_AUTH_BACKEND) needs ENGINE_IDP_URL");
  });

  test("a provider has one app", () => {
    const providers = '[oauth.providers.google]\nclient_id = "a"\nclient_secret = "b"\n';
    expect(loadToml(providers).config.oauthProviders).toEqual({ google: { client_id: "a", client_secret: "b" } });
    const error = failure(() => loadToml(providers, { env: { ENGINE_OAUTH_GOOGLE_CLIENT_ID: "c" } }));
    expect(error.message).toBe(
      `ENGINE_OAUTH_GOOGLE_CLIENT_ID and google in oauth.providers in ${FILE} both say which app it is: set one of them`,
    );
  });

  test("catalog and data are two places", () => {
    expect(failure(() => load({ env: { ENGINE_LOCAL_DB: "/d", ENGINE_LOCAL_DATA: "/d" } })).message).toContain(
      "same path",
    );
  });
});

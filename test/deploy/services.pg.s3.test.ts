import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { checkVersion } from "../../src/db/postgres/server-check.ts";
import { findVersitygw, startVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { runDeploy } from "./run-deploy.test-kit.ts";

/** Servers that a deployment is told to use and that will not do: `up` says so, and starts nothing. */

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "engine-deploy-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** What `up` says; it has exit code 1 or 2, and leaves what `init` wrote. */
async function refusalOf(env: Readonly<Record<string, string>>, expected: 1 | 2 = 1): Promise<string> {
  const name = ["--name", "lab"];
  expect(await runDeploy(home, ["init", "--target", "local", "--yes", ...name], env)).toMatchObject({ code: 0 });
  const { code, stderr } = await runDeploy(home, ["up", "--yes", ...name]);
  expect({ code, stderr }).toMatchObject({ code: expected });
  expect(readdirSync(join(home, "deployments", "lab"))).toEqual(["deployment.json", "engine.toml"]);
  return stderr;
}

describe.skipIf(lacks("PostgreSQL"))("a PostgreSQL server that is named", () => {
  let databases: TestDatabases;
  beforeAll(async () => {
    databases = await sharedTestServer();
  });
  afterAll(() => databases.stop());

  it("must have the database, in UTF-8, and let the user make a schema", async () => {
    const url = await databases.createDatabase();
    const made = new URL(url).pathname.slice(1);
    const superuser = databases.url("postgres");
    await databases.query(superuser, `CREATE DATABASE ${made}_ascii TEMPLATE template0 ENCODING 'SQL_ASCII'`);
    await databases.query(superuser, `CREATE ROLE ${made}_reader LOGIN`);
    try {
      expect(await refusalOf({ ENGINE_CATALOG_URL: `${url}_ascii` })).toContain(
        "is not in UTF-8 but SQL_ASCII: create one with ENCODING 'UTF8'",
      );
      rmSync(join(home, "deployments"), { recursive: true });
      const reader = new URL(url);
      reader.username = "";
      const asReader = { ENGINE_CATALOG_URL: reader.href, PGUSER: `${made}_reader` };
      expect(await refusalOf(asReader)).toContain(`may not be changed by ${made}_reader: let the user create schemas`);
      rmSync(join(home, "deployments"), { recursive: true });
      expect(await refusalOf({ ENGINE_CATALOG_URL: `${url}_none` })).toContain("does not exist: create it");
    } finally {
      await databases.query(superuser, `DROP DATABASE ${made}_ascii`);
      await databases.query(superuser, `DROP ROLE ${made}_reader`);
    }
  });
});

describe("a PostgreSQL server that is named", () => {
  it("must be there", async () => {
    expect(await refusalOf({ ENGINE_CATALOG_URL: "postgres://u:hunter2@127.0.0.1:1/d" })).toMatch(
      /^error: the catalog d on 127\.0\.0\.1:1 cannot be opened: check that the server runs (?!.*hunter2)/,
    );
  });

  it("must know the settings of a session: version 11 does not", async () => {
    const old = createServer((socket) => {
      // The answers of version 11: no TLS, and then what it says of a setting that came with version 12.
      socket.once("data", () => {
        socket.write("N");
        socket.once("data", () => socket.end(errorMessage("42704", 'unrecognized parameter "plan_cache_mode"')));
      });
    }).listen(0, "127.0.0.1");
    await once(old, "listening");
    const address = old.address();
    const port = typeof address === "object" ? address?.port : 0;
    try {
      const text = await refusalOf({ ENGINE_CATALOG_URL: `postgres://u@127.0.0.1:${port}/d` });
      expect(text).toContain("is on a server that is too old, or behind a pooler: name a newer server directly");
    } finally {
      old.close();
    }
  });

  it.each(["9.6.24", "13.22 (Debian 13.22-0+deb11u1)", "undefined"])("must not be of version %s", async (version) => {
    const session = { query: () => Promise.resolve([{ version }]) };
    await expect(checkVersion(session, "d on db:5432")).rejects.toThrow(
      `the server of d on db:5432 is PostgreSQL ${version}: name one of version 14 or newer`,
    );
  });

  it.each(["14.0", "15.14 (Debian 15.14-0+deb12u1)", "19devel"])("may be of version %s", async (version) => {
    await checkVersion({ query: () => Promise.resolve([{ version }]) }, "d");
  });
});

function errorMessage(state: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${state}\0M${message}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

describe.skipIf(lacks("S3 server"))("an S3 server that is named", () => {
  let server: Versitygw;
  beforeAll(async () => {
    server = await startVersitygw((await findVersitygw()) ?? "");
  });
  afterAll(() => server.stop());

  it("must have the bucket, and know the keys", async () => {
    const env = {
      ENGINE_OBJSTORE_ENDPOINT: server.endpoint,
      ENGINE_OBJSTORE_REGION: "us-east-1",
      ENGINE_OBJSTORE_BUCKET: "nowhere",
      ENGINE_OBJSTORE_ACCESS_KEY_ID: "somebody",
      ENGINE_OBJSTORE_SECRET_ACCESS_KEY: "hunter2",
    };
    const text = await refusalOf(env, 2);
    expect(text).toMatch(/^error: object store: cannot write .*_check.*ENGINE_OBJSTORE_ACCESS_KEY_ID(?!.*hunter2)/);
  });
});

import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { openInNewBucket } from "../../../io/objectstore/s3/s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "../../../io/objectstore/s3/versitygw.test-kit.ts";
import { fileDropContract } from "./contract.test-kit.ts";
import { openSqlite } from "./opened.test-kit.ts";

describe.skipIf(lacks("S3 server"))("versitygw", () => {
  let server: Versitygw;
  beforeAll(async () => (server = await sharedVersitygw()));
  afterAll(() => server.stop());

  const openStore = async () => {
    const { store } = await openInNewBucket(server);
    return { store, close: async () => store.close() };
  };
  fileDropContract("SQLite and S3", { openCatalog: openSqlite, openStore, deathsApart: 11 });
});

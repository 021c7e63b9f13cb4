import { afterAll, beforeAll, describe } from "vitest";
import { openInNewBucket } from "../../../io/objectstore/s3/s3.test-kit.ts";
import { findVersitygw, startVersitygw, type Versitygw } from "../../../io/objectstore/s3/versitygw.test-kit.ts";
import { fileDropContract } from "./contract.test-kit.ts";
import { openSqlite } from "./opened.test-kit.ts";

const program = await findVersitygw();

describe.skipIf(program === undefined)("versitygw", () => {
  let server: Versitygw;
  beforeAll(async () => (server = await startVersitygw(program ?? "")));
  afterAll(() => server.stop());

  const openStore = async () => {
    const { store } = await openInNewBucket(server);
    return { store, close: async () => store.close() };
  };
  fileDropContract("SQLite and S3", { openCatalog: openSqlite, openStore, deathsApart: 11 });
});

import { afterAll, beforeAll, describe } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { describeObjectStore } from "../contract.test-kit.ts";
import { openInNewBucket } from "./s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "./versitygw.test-kit.ts";

describe.skipIf(lacks("S3 server"))("versitygw", () => {
  let server: Versitygw;
  beforeAll(async () => (server = await sharedVersitygw()));
  afterAll(() => server.stop());

  describeObjectStore("s3", async () => {
    const { store } = await openInNewBucket(server);
    return { store, dispose: async () => store.close() };
  });
});

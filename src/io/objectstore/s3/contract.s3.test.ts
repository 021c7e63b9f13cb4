import { afterAll, beforeAll } from "vitest";
import { describeWith } from "../../../core/gates.test-kit.ts";
import { describeObjectStore } from "../contract.test-kit.ts";
import { openInNewBucket } from "./s3.test-kit.ts";
import { type Versitygw, findVersitygw, startVersitygw } from "./versitygw.test-kit.ts";

const program = await findVersitygw();

describeWith("S3 server")("versitygw", () => {
  let server: Versitygw;
  beforeAll(async () => (server = await startVersitygw(program ?? "")));
  afterAll(() => server.stop());

  describeObjectStore("s3", async () => {
    const { store } = await openInNewBucket(server);
    return { store, dispose: async () => store.close() };
  });
});

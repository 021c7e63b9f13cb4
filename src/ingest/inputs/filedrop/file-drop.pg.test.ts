import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { fileDropContract } from "./contract.test-kit.ts";
import { openDisk } from "./opened.test-kit.ts";

onPostgres("dropped files", (openCatalog) =>
  fileDropContract("PostgreSQL and a local disk", { openCatalog, openStore: openDisk, deathsApart: 11 }),
);

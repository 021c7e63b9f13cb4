import { fileDropContract } from "./contract.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";

fileDropContract("SQLite and a local disk", { openCatalog: openSqlite, openStore: openDisk, deathsApart: 7 });

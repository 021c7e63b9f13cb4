import { deathContract } from "./contract.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";

deathContract("SQLite and a local disk", { openCatalog: openSqlite, openStore: openDisk, deathsApart: 1 });

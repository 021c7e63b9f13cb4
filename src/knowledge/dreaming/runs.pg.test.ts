import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { runsContract } from "./runs.test-kit.ts";

onPostgres("the ledger of pipelines", (open) => runsContract("postgres", open));

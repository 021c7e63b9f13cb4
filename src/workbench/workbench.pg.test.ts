import { onPostgres } from "../catalog/postgres/contract-server.test-kit.ts";
import { workbenchContract } from "./contract.test-kit.ts";

onPostgres("workbench", (open) => workbenchContract("postgres", open));

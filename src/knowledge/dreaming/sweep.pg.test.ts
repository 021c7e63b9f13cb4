import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { sweepContract } from "./sweep.test-kit.ts";

onPostgres("the sweep of runs", (open) => sweepContract("postgres", open));

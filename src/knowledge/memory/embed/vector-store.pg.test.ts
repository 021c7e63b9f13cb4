import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { vectorContract } from "./vector-store.test-kit.ts";

onPostgres("vectors of memories", (open) => vectorContract("postgres", open));

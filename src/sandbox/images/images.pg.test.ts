import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { imagesContract } from "./contract.ts";

onPostgres("images", (open) => imagesContract("postgres", open));

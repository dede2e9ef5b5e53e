"""Several processes and NCCL."""

SNIPPETS = {
    "rank_missing": 'torch.distributed.init_process_group("gloo")',
    "local_rank_missing": 'local_rank = int(os.environ["LOCAL_RANK"])',
    "nccl_without_gpu": """
torch.distributed.init_process_group("nccl", init_method="file:///tmp/none", rank=0, world_size=1)
""",
    "no_process_group": "torch.distributed.get_rank()",
    "no_process_group#2": "torch.distributed.barrier()",
    "no_process_group#3": "torch.utils.data.distributed.DistributedSampler([1, 2])",
    "initialised_twice": """
for _ in range(2):
    torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
""",
    "port_in_use": """
import socket
taken = socket.create_server(("127.0.0.1", 0))
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(taken.getsockname()[1]))
torch.distributed.init_process_group("gloo")
""",
    "rendezvous_timeout": """
import datetime
os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
""",
    "rendezvous_timeout#2": """
import datetime
os.environ.update(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
""",
    "rank_range": """
torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=3, world_size=2)
""",
    "no_process_group#4": "nn.parallel.DistributedDataParallel(nn.Linear(2, 2))",
    "ddp_devices": """
torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
nn.parallel.DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])
""",
}

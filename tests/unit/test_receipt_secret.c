/* What a receipt does not keep: secrets in values, in the names of variables and in the words of commands. */
#include "report/receipt/receipt.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static void assert_left(const char *value, const char *wanted) {
    int withheld = 0;
    char *kept = hec_receipt_without_secrets(value, &withheld);
    if (strcmp(kept, wanted) != 0)
        fail_msg("%s\n became %s\n not    %s", value, kept, wanted);
    assert_int_equal(withheld > 0, strcmp(value, wanted) != 0);
    free(kept);
}

/* What is left of a value; a secret has none of its own left. */
TEST(without_secrets) {
    static const struct {
        const char *value, *kept;
    } rows[] = {
        {"https://bob:geheim@hub.example/x?a=b@c", "https://[withheld]@hub.example/x?a=b@c"},
        {"a https://ghu16C7e@git.example b", "a https://[withheld]@git.example b"},
        {"ssh://git@github.com/a/b.git", "ssh://git@github.com/a/b.git"},
        {"Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1", "Authorization: Bearer [withheld]"},
        {"hf_abcdefghijk1mnop", "[withheld]"},
        {"from huggingface_hub import hf_hub_download", "from huggingface_hub import hf_hub_download"},
        {"hf_hub", "hf_hub"},
        {"--x=sk-proj-0123456789", "--x=[withheld]"},
        {"AKIAIOSFODNN7EXAMPLE", "[withheld]"},
        {"key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
        {"p8Kx2QvTz7Lm4RbW9cYd1", "[withheld]"},
        {"0123456789abcdef0123456789abcdef01234567", "[withheld]"},
        {"meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct"},
        {"DistributedDataParallel", "DistributedDataParallel"},
        {"GPU-5e3fa1b2-0000-1111-2222-333344445555", "GPU-5e3fa1b2-0000-1111-2222-333344445555"},
        {"expandable_segments:True,max_split_size_mb:128", "expandable_segments:True,max_split_size_mb:128"},
        {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"},
        {"import torch; print(torch.ones(1000000))", "import torch; print(torch.ones(1000000))"},
        {"", ""},
        /* a value by its name, within a text */
        {"xai-geheim99AB12cd lsv2_pt_geheim99ab12 PMAK-geheim99ab12", "[withheld] [withheld] [withheld]"},
        {"https://outlook.office.com/webhook/geheim99", "https://outlook.office.com/webhook/[withheld]"},
        {"docker login --password-stdin <<EOF\ngeheim\nEOF", "docker login --password-stdin <<EOF\n[withheld]\nEOF"},
        {"cat <<-'E' | docker login\ngeheim\nE\nx", "cat <<-'E' | docker login\n[withheld]\nE\nx"},
        {"python3 - <<EOF\nprint(1, 2)\nEOF", "python3 - <<EOF\nprint(1, 2)\nEOF"},
        {"./a --token=${T:-geheim99} --key=$K --token=${T} b", "./a --token=[withheld]} --key=$K --token=${T} b"},
        {"train --passcode geheim", "train --passcode [withheld]"},
        {"train --passkey=geheim", "train --passkey=[withheld]"},
        {"keytool -storepass geheim -keypass geheim", "keytool -storepass [withheld] -keypass [withheld]"},
        {"--access-code geheim --unlock-code geheim", "--access-code [withheld] --unlock-code [withheld]"},
        {"NCCL_CREDS=bob:geheim TORCH_PSW=geheim x", "NCCL_CREDS=[withheld] TORCH_PSW=[withheld] x"},
        {"mysql --password geheim -h x", "mysql --password [withheld] -h x"},
        {"export PGPASSWORD=geheim; psql", "export PGPASSWORD=[withheld]; psql"},
        {"-H 'Authorization: Bearer geheim99' x", "-H 'Authorization: Bearer [withheld]' x"},
        {"Cookie: a=geheim; b=geheim", "Cookie: [withheld]"},
        {"{\"user\": \"u\", \"password\": \"ge heim\"}", "{\"user\": \"u\", \"password\": \"[withheld]\"}"},
        {"{\\\"api_key\\\":\\\"geheim99\\\"}", "{\\\"api_key\\\":\\\"[withheld]\\\"}"},
        {"https://h/x?access_token=geheim99&y=1", "https://h/x?access_token=[withheld]&y=1"},
        {"Server=db;Password=geheim;Port=1", "Server=db;Password=[withheld];Port=1"},
        {"ftp bob:geheim@host", "ftp [withheld]@host"},
        {"AWS_SECRET_ACCESS_KEY='geheim' aws", "AWS_SECRET_ACCESS_KEY='[withheld]' aws"},
        {"x --token $HF_TOKEN", "x --token $HF_TOKEN"},
        {"x --max-tokens 128 --tokenizer bert-base-cased", "x --max-tokens 128 --tokenizer bert-base-cased"},
        {"git@github.com:a/b nvcr.io/a:1@sha256:abc", "git@github.com:a/b nvcr.io/a:1@sha256:abc"},
        {"sorted(x, key=function)", "sorted(x, key=function)"},
        {"os.environ[\"WANDB_API_KEY\"]=\"geheim99\"", "os.environ[\"WANDB_API_KEY\"]=\"[withheld]\""},
        {"os.putenv('HF_TOKEN', 'geheim99')", "os.putenv('HF_TOKEN', '[withheld]')"},
        {"AccountKey=geheim99;EndpointSuffix=x", "AccountKey=[withheld];EndpointSuffix=x"},
        {"a -----BEGIN RSA PRIVATE KEY----- MIIgeheim -----END RSA PRIVATE KEY-----\nb", "a [withheld]\nb"},
        {"https://hooks.slack.com/services/T0/B0/geheim99", "https://hooks.slack.com/services/[withheld]"},
        {"https://api.telegram.org/bot1:geheim99", "https://api.telegram.org/bot[withheld]"},
        {"nvapi-geheim99abcdefg rk_live_geheim99abcd", "[withheld] [withheld]"},
        {"ldap://x/??bindpw=geheim99", "ldap://x/??bindpw=[withheld]"},
        /* options of programs */
        {"curl -u bob:geheim https://x", "curl -u bob:[withheld] https://x"},
        {"curl -ubob:geheim https://x", "curl -ubob:[withheld] https://x"},
        {"a; /usr/bin/mysql -u root -pgeheim db", "a; /usr/bin/mysql -u root -p[withheld] db"},
        {"sshpass -p geheim ssh -p 22 x", "sshpass -p [withheld] ssh -p 22 x"},
        {"docker run -p 8080:80 -u 1000:1000 x", "docker run -p 8080:80 -u 1000:1000 x"},
        {"echo $(docker login -p geheim)", "echo $(docker login -p [withheld])"},
        {"train.py -p 3 --pin-memory true -u 8:9", "train.py -p 3 --pin-memory true -u 8:9"},
        {"mysql -p'ge heim' -h x", "mysql -p'[withheld]' -h x"},
        /* options of one letter of programs that nobody knows: kept is what no secret looks like */
        {"train.py -p geheim", "train.py -p [withheld]"},
        {"python3 -u train.py -p geheim -b 256", "python3 -u train.py -p [withheld] -b 256"},
        {"python3.11 -m my.tool -P 'ge heim' x", "python3.11 -m my.tool -P '[withheld]' x"},
        {"./train -pgeheim9", "./train -p[withheld]"},
        {"env A=1 nice -n 5 mytrain -k geheim", "env A=1 nice -n 5 mytrain -k [withheld]"},
        {"cd x && mytrain -w geheim | tee log", "cd x && mytrain -w [withheld] | tee log"},
        {"sh -c 'mytrain -p geheim'", "sh -c 'mytrain -p [withheld]'"},
        {"x=$(mytrain -p geheim)", "x=$(mytrain -p [withheld])"},
        {"srun -p gpu -w node7 train.py -p geheim", "srun -p gpu -w node7 train.py -p [withheld]"},
        {"torchrun --nproc-per-node 2 train.py -W geheim", "torchrun --nproc-per-node 2 train.py -W [withheld]"},
        {"train.py -u bob:geheim", "train.py -u bob:[withheld]"},
        {"tool -U bob%geheim", "tool -U bob%[withheld]"},
        {"tool -u bob,geheim host", "tool -u bob,[withheld] host"},
        {"tool -l bob:geheim9", "tool -l bob:[withheld]"},
        {"train.py -p 8080 -k 5 -w 1e-4 -p 16:9 -k 0,1 -w 8G", "train.py -p 8080 -k 5 -w 1e-4 -p 16:9 -k 0,1 -w 8G"},
        {"train.py -p ./out -k /data/x -w ../y -p w.pt -P ~/z", "train.py -p ./out -k /data/x -w ../y -p w.pt -P ~/z"},
        {"train.py -p bf16 -k true -w $W -p -v", "train.py -p bf16 -k true -w $W -p -v"},
        {"train.py -a resnet50 -b 256 -j 4 -m bert-base", "train.py -a resnet50 -b 256 -j 4 -m bert-base"},
        {"./train -precision bf16 -prefetch -warm-up x", "./train -precision bf16 -prefetch -warm-up x"},
        {"mkdir -p a/b; cp -p a b; sort -k x; grep -w word f", "mkdir -p a/b; cp -p a b; sort -k x; grep -w word f"},
        {"python3 -c 'print(a -k b); c -p d'", "python3 -c 'print(a -k b); c -p d'"},
        /* who logs in */
        {"train.py --login bob:geheim", "train.py --login bob:[withheld]"},
        {"train.py --login=bob:geheim --db-user 'bob:ge heim'",
         "train.py --login=bob:[withheld] --db-user 'bob:[withheld]'"},
        {"x --user bob --account a/b --user 1000:1000", "x --user bob --account a/b --user 1000:1000"},
        {"x --user-agent Mozilla/5.0 --identity ssh://x", "x --user-agent Mozilla/5.0 --identity ssh://x"},
        /* on the input of what reads a password, and short names */
        {"echo geheim | docker login -u bob x --password-stdin",
         "echo [withheld] | docker login -u bob x --password-stdin"},
        {"printf '%s' 'ge heim' | sudo -S true", "printf [withheld] | sudo -S true"},
        {"sudo -S true <<< 'ge heim'", "sudo -S true <<< [withheld]"},
        {"echo $PASSWORD | docker login --password-stdin; echo a | wc",
         "echo $PASSWORD | docker login --password-stdin; echo a | wc"},
        {"x --pass gehe --pwd gehe --pin 1234 --otp 123456",
         "x --pass [withheld] --pwd [withheld] --pin [withheld] --otp [withheld]"},
        {"ffmpeg -pass 1 --passes 20 --pin 1", "ffmpeg -pass 1 --passes 20 --pin 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_left(rows[i].value, rows[i].kept);
}

/* Ten of each kind that were thought of later: no text of theirs is left, and what stands beside it is. */
TEST(more_secrets_of_each_kind) {
    static const struct {
        const char *value, *kept;
    } rows[] = {
        /* addresses */
        {"x https://bob:ge/geheim@host/y", "x https://[withheld]@host/y"},
        {"x https://bob:geheim#1@host", "x https://[withheld]@host"},
        {"x https://bob:geheim?@host", "x https://[withheld]@host"},
        {"x=https%3A%2F%2Fbob:geheim%40host/x", "x=https%3A%2F%2F[withheld]%40host/x"},
        {"x=https%3a%2f%2fgeheim9%40host/x", "x=https%3a%2f%2f[withheld]%40host/x"},
        {"jdbc:oracle:thin:bob/geheim@h:1521/x", "jdbc:oracle:thin:[withheld]@h:1521/x"},
        {"https://hooks.zapier.com/hooks/catch/1/geheim99", "https://hooks.zapier.com/hooks/catch/[withheld]"},
        {"redis://:geheim@h:6379/0", "redis://[withheld]@h:6379/0"},
        {"https://a.blob.core.windows.net/c?sv=2020&sig=geheim99%3D&se=2",
         "https://a.blob.core.windows.net/c?sv=2020&sig=[withheld]&se=2"},
        {"https://h/x#access_token=geheim99", "https://h/x#access_token=[withheld]"},
        {"http://host:8080/a@b?c=d#e docker://ubuntu:22.04", "http://host:8080/a@b?c=d#e docker://ubuntu:22.04"},
        /* git remotes */
        {"https://oauth2:geheim@gitlab.com/a/b.git", "https://[withheld]@gitlab.com/a/b.git"},
        {"https://x-access-token:geheim99@github.com/a/b", "https://[withheld]@github.com/a/b"},
        {"https://geheim99@github.com/a/b", "https://[withheld]@github.com/a/b"},
        {"ssh://bob:geheim99@host:22/a", "ssh://[withheld]@host:22/a"},
        {"git+https://geheim99@github.com/a/b", "git+https://[withheld]@github.com/a/b"},
        {"git+ssh://bob:geheim99@host/a", "git+ssh://[withheld]@host/a"},
        {"https://gitlab-ci-token:geheim/1@gitlab.com/a", "https://[withheld]@gitlab.com/a"},
        {"https://bob:p%40geheim@dev.azure.com/o/p/_git/r", "https://[withheld]@dev.azure.com/o/p/_git/r"},
        {"bob:geheim99@host:a/b.git", "[withheld]@host:a/b.git"},
        {"https://bob:geheim@[2001:db8::1]:8443/a", "https://[withheld]@[2001:db8::1]:8443/a"},
        {"ssh://git@host:2222/a/b.git git@host:a/b.git", "ssh://git@host:2222/a/b.git git@host:a/b.git"},
        /* words of programs */
        {"wandb login geheim99", "wandb login [withheld]"},
        {"wandb login --relogin geheim99", "wandb login --relogin [withheld]"},
        {"wandb login && python3 train.py", "wandb login && python3 train.py"},
        {"vault login geheim99", "vault login [withheld]"},
        {"mysqladmin -u root password geheim", "mysqladmin -u root password [withheld]"},
        {"aws configure set aws_secret_access_key geheim", "aws configure set aws_secret_access_key [withheld]"},
        {"aws configure set aws_session_token geheim", "aws configure set aws_session_token [withheld]"},
        {"machine h login bob password geheim", "machine h login bob password [withheld]"},
        {"ssh-keygen -t ed25519 -N 'ge heim' -f x", "ssh-keygen -t ed25519 -N '[withheld]' -f x"},
        {"curl -b session=geheim x", "curl -b [withheld] x"},
        {"echo geheim | kinit bob", "echo [withheld] | kinit bob"},
        {"printf geheim | cryptsetup open x y", "printf [withheld] | cryptsetup open x y"},
        /* names */
        {"x --mnemonic 'geheim geheim'", "x --mnemonic '[withheld]'"},
        {"x --seed-phrase 'geheim geheim'", "x --seed-phrase '[withheld]'"},
        {"x --hftoken geheim99", "x --hftoken [withheld]"},
        {"x --apiToken=geheim99", "x --apiToken=[withheld]"},
        {"x --authtoken geheim99", "x --authtoken [withheld]"},
        {"x --kennwort geheim", "x --kennwort [withheld]"},
        {"x --mot-de-passe geheim", "x --mot-de-passe [withheld]"},
        {"x --senha=geheim", "x --senha=[withheld]"},
        {"x SESSION_ID=geheim99", "x SESSION_ID=[withheld]"},
        {"x --session-id geheim99", "x --session-id [withheld]"},
        {"x --csrf geheim99", "x --csrf [withheld]"},
        {"x --seed 42 --session 3 --pad-token x", "x --seed 42 --session 3 --pad-token x"},
        /* a name and its value without a sign */
        {"setenv HF_TOKEN geheim99; x", "setenv HF_TOKEN [withheld]; x"},
        {"set -gx PASSWORD geheim", "set -gx PASSWORD [withheld]"},
        {"x --set hub_token geheim99 --set lr 1e-4", "x --set hub_token [withheld] --set lr 1e-4"},
        {"wandb config set api_key geheim99", "wandb config set api_key [withheld]"},
        {"redis-cli set db_password 'ge heim'", "redis-cli set db_password '[withheld]'"},
        {"redis-cli config set requirepass geheim", "redis-cli config set requirepass [withheld]"},
        {"set PASSWORD $1; set -e; x --set a b", "set PASSWORD $1; set -e; x --set a b"},
        /* words that no option names */
        {"htpasswd -b f bob geheim", "htpasswd -b f [withheld] [withheld]"},
        {"htpasswd -nb bob geheim; cat a b c", "htpasswd -nb bob [withheld]; cat a b c"},
        {"sqlplus bob/geheim@db @x.sql", "sqlplus bob/[withheld] @x.sql"},
        {"rman target bob/geheim", "rman target bob/[withheld]"},
        {"smbclient //h/s geheim -d 3 -U bob", "smbclient //h/s [withheld] -d 3 -U bob"},
        {"sudo rabbitmqctl add_user bob geheim", "sudo rabbitmqctl add_user bob [withheld]"},
        {"mc alias set a http://h bob geheim", "mc alias set a http://h [withheld] [withheld]"},
        {"nmcli dev wifi connect x password geheim", "nmcli dev wifi connect x password [withheld]"},
        {"kubectl create secret generic x --from-literal=a=geheim --from-literal b=geheim",
         "kubectl create secret generic x --from-literal=a=[withheld] --from-literal b=[withheld]"},
        {"gh secret set X --body geheim", "gh secret set X --body [withheld]"},
        {"psql -c \"ALTER USER bob WITH PASSWORD 'geheim'\"", "psql -c \"ALTER USER bob WITH PASSWORD '[withheld]'\""},
        {"mysql -e \"create user bob identified by 'ge heim'\"",
         "mysql -e \"create user bob identified by '[withheld]'\""},
        /* written as addresses write it, and code */
        {"https://h/x?%61ccess_token=geheim99&y=1", "https://h/x?%61ccess_token=[withheld]&y=1"},
        {"https://h/x?access%5Ftoken%3Dgeheim99", "https://h/x?access%5Ftoken%3D[withheld]"},
        {"https://h/x?q={%22password%22:%22geheim%22}", "https://h/x?q={%22password%22:%22[withheld]"},
        {"python3 -c \"huggingface_hub.login('geheim'); x()\"",
         "python3 -c \"huggingface_hub.login('[withheld]'); x()\""},
        {"smtp.login('bob', 'ge heim')", "smtp.login('[withheld]')"},
        {"requests.get(u, auth=('bob', 'geheim'))", "requests.get(u, auth=('[withheld]'))"},
        {"HTTPBasicAuth(\"bob\", \"geheim\")", "HTTPBasicAuth(\"[withheld]\")"},
        {"login(); login(name); f('login')", "login(); login(name); f('login')"},
        /* code */
        {"{'password' => 'ge heim'}", "{'password' => '[withheld]'}"},
        {":password => \"geheim\"", ":password => \"[withheld]\""},
        {"x password=>geheim", "x password=>[withheld]"},
        {"<password>geheim</password>", "<password>[withheld]</password>"},
        {"<x><apiKey>geheim99</apiKey></x>", "<x><apiKey>[withheld]</apiKey></x>"},
        {"wandb={api_key: geheim99, x: 1}", "wandb={api_key: [withheld]"},
        {"++wandb.key=geheim99", "++wandb.key=[withheld]"},
        {"-Djavax.net.ssl.keyStorePassword=geheim", "-Djavax.net.ssl.keyStorePassword=[withheld]"},
        {"openai.api_key = 'geheim99'", "openai.api_key = '[withheld]'"},
        {"environ.update(HF_TOKEN='geheim99')", "environ.update(HF_TOKEN='[withheld]')"},
        {"if password > 3 and keys<4: x >= 5", "if password > 3 and keys<4: x >= 5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_left(rows[i].value, rows[i].kept);
}

TEST(names_of_secrets) {
    static const char *const secret[] = {
        "SLURM_JWT=abcdefgh", "HF_TOKEN=x",        "CUDA_PASS=hunter22", "NCCL_PWD=x",         "VLLM_API_KEY=k",
        "TORCH_COOKIE=c",     "OMP_BEARER=b",      "XLA_DSN=d",          "TF_USE_SIGNATURE=s", "PYTHON_REGISTRY_PAT=p",
        "NCCL_SESSION_ID=x",  "HF_HFTOKEN=x",      "TORCH_CSRF=x",       "TF_MNEMONIC=x",      "CUDA_KENNWORT=x",
        "OMP_SENHA=x",        "XLA_CREDENTIALS=x", "SLURM_OTP=1234",     "VLLM_APITOKEN=x",    "NCCL_SEED_PHRASE=x"};
    static const char *const kept[] = {"OMP_NUM_THREADS=4", "PYTHONPATH=/a:/b",   "TOKENIZERS_PARALLELISM=false",
                                       "SLURM_JOB_ID=77",   "LD_LIBRARY_PATH=/c", "TORCH_COMPILE_DEBUG=1"};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < (side ? sizeof kept / sizeof kept[0] : sizeof secret / sizeof secret[0]); i++) {
            const char *word = side ? kept[i] : secret[i];
            struct hec_receipt one = {.error = HEC_OK};
            hec_receipt_add_environment(&one, (char *const[]){(char *)(uintptr_t)word, NULL});
            assert_int_equal(one.environment.count, side);
            hec_receipt_free(&one);
        }
}

TEST(commands_without_secrets) {
    static const char *const words[] = {"env",
                                        "HF_TOKEN=hf_x1y2z3w4",
                                        "python3",
                                        "train.py",
                                        "--api-key",
                                        "abcdef",
                                        "--tokenizer",
                                        "bert-base-cased",
                                        "--password",
                                        "x",
                                        "--max-tokens",
                                        "128",
                                        "--key-dim",
                                        "64",
                                        "--token",
                                        "50256",
                                        "--wandb-key=k1k2k3",
                                        "--pass",
                                        "12345678",
                                        "PGPASSWORD=a b",
                                        "/usr/bin/curl",
                                        "--user",
                                        "bob:a b",
                                        "--password",
                                        "-Hunter2Zebra",
                                        "--password",
                                        "-v",
                                        NULL};
    static const char *const left[] = {"env",
                                       "HF_TOKEN=[withheld]",
                                       "python3",
                                       "train.py",
                                       "--api-key",
                                       "[withheld]",
                                       "--tokenizer",
                                       "bert-base-cased",
                                       "--password",
                                       "[withheld]",
                                       "--max-tokens",
                                       "128",
                                       "--key-dim",
                                       "64",
                                       "--token",
                                       "50256",
                                       "--wandb-key=[withheld]",
                                       "--pass",
                                       "[withheld]",
                                       "PGPASSWORD=[withheld]",
                                       "/usr/bin/curl",
                                       "--user",
                                       "bob:[withheld]",
                                       "--password",
                                       "[withheld]",
                                       "--password",
                                       "-v"};
    struct hec_receipt one = {.error = HEC_OK};
    hec_receipt_add_command(&one, 1, (char *const *)(uintptr_t)words);
    assert_int_equal(one.command[1].count, sizeof left / sizeof left[0]);
    for (int i = 0; i < one.command[1].count; i++)
        assert_string_equal(one.command[1].list[i], left[i]);
    assert_int_equal(one.withheld.count, 8);
    assert_string_equal(one.withheld.list[1], "word 6 of command B");
    assert_false(hec_receipt_has_commands(&one));
    hec_receipt_set_folder(&one, "/home/a/ghp_geheim0123456789");
    assert_string_equal(one.folder, "/home/a/[withheld]");
    assert_string_equal(one.withheld.list[one.withheld.count - 1], "the working folder");
    hec_receipt_free(&one);
}

import sys, time, torch
from sordino.learn.layers import Call, pieces_of
from sordino.learn import gpu_products
from sordino.learn.gpu_products import GpuProduct
nn=torch.nn
torch.backends.cuda.matmul.allow_tf32=torch.backends.cudnn.allow_tf32=False
def ms(f,n=10):
    f(); f(); ts=[]
    for _ in range(n):
        a,b=(torch.cuda.Event(enable_timing=True) for _ in range(2)); a.record(); f(); b.record(); torch.cuda.synchronize(); ts.append(a.elapsed_time(b))
    return sorted(ts)[n//2]
def conv(i,o,h,s): return nn.Conv2d(i,o,3,stride=s,padding=1), torch.randn(1024,i,h,h)
def lin(i,o): return nn.Linear(i,o), torch.randn(64,128,i)
CASES={'c3-64':conv(3,64,32,1),'c64-64s2':conv(64,64,32,2),'c64-128':conv(64,128,16,1),'c128-128s2':conv(128,128,16,2),'c128-256s2':conv(128,256,8,2),'l512':lin(512,512),'l2048':lin(512,2048)}
# rows, bp, bd, warps, stages
C=[(32,128,128,8,3),(32,64,64,4,3),(32,64,128,4,3),(32,64,128,8,3),(64,64,64,4,3),(32,128,128,8,4),(64,128,128,8,3)]
start=time.time()
for name,(layer,x) in CASES.items():
    layer=layer.cuda(); x=x.cuda(); out=layer(x); g=torch.randn_like(out)
    p=pieces_of(Call(layer,x,g),{id(layer.weight)})[0]
    U=len(x); n=8
    ref=(p.out_rows(p.out[:n]).transpose(2,3).double()@p.into_rows(p.into[:n]).double()).flatten(1).norm(dim=1)
    f=torch.rand(U,device='cuda')*100
    flops=2*U*p.length*p.width*p.height
    for rows,bp,bd,w,st in C:
        gp=GpuProduct(p); c=gp._constants
        by=c[-5]; lines=c[2] if by else p.width
        rows=min(rows,max(16,p.length)); bp=min(bp,max(32,1<<(lines-1).bit_length())); bd=min(bd,1<<(p.height-1).bit_length())
        for prec in ('tf32','tf32x3'):
            gp._constants=c[:-4]+(rows,bp,bd,prec); gp._warps,gp._stages=w,st
            places=p.width//c[2] if by else 1
            gp._tiles=places*-(-lines//bp)*-(-p.height//bd)
            s=torch.zeros(gp.shape,dtype=torch.int64,device='cuda')
            try:
                err=(gp.norms(U)[:n]/ref-1).abs().max().item()
                a=ms(lambda:gp.norms(U)); b=ms(lambda:gp.add(s,f))
            except Exception as e:
                print(name,rows,bp,bd,w,st,prec,type(e).__name__,str(e)[:80]); continue
            print(f'{name} {rows} {bp} {bd} w{w} s{st} {prec} norms {a:.3f} add {b:.3f} ms {flops/a/1e9:.0f} TF err {err:.1e}',flush=True)
    if time.time()-start>200: break
